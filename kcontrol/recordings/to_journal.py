"""The conversion of a recording of real brokers into a journal, so that functions for journals work for recordings too.

The order between writes, transitions and requests is inferred (`interleave.py`), and so are causes. The records' times have no
meaning.
"""

from collections.abc import Sequence
from typing import Any

from kcontrol.core.errors import UserError
from kcontrol.core.model import TopicPartition
from kcontrol.core.znodes import BROKER_IDS, CONTROLLER, CONTROLLER_EPOCH, ISR_CHANGE_NOTIFICATION, TOPICS, state_path
from kcontrol.journal.journal import JOURNAL_VERSION, OUTSIDE, Journal, Record, RecordId
from kcontrol.journal.journal_file import WRONG
from kcontrol.recordings.interleave import Item, Leaderships, interleave, is_isr_change, started
from kcontrol.recordings.recorded_words import translated
from kcontrol.recordings.recording import RECORDED, TOOL, UNNAMED, Recording, Step, long, state_key, text_of

WORLD = TOOL  # its records have the node OUTSIDE, as in every journal
By = int | str
"""A broker's id, or TOOL."""

STATE_FIELDS = ["controller_epoch", "leader", "version", "leader_epoch", "isr"]
NOT_KNOWN = "the recording does not say why"
ERRORS = {-110: "NodeExists", -103: "BadVersion", -101: "NoNode", -111: "NotEmpty"}


def to_journal(recording: Recording) -> list[Record]:
    """Raises UserError, which names the step, if a step contradicts the steps before it."""
    replay, steps = Replay(recording), translated(recording)["steps"]
    for number, step in enumerate(steps):
        try:
            replay.step(number, step, steps[number + 1 :])
        except WRONG as problem:
            raise UserError(f"The recording {recording['scenario']} contradicts itself in step {number}: {problem!r}.") from None
    return replay.journal.records


class Replay:
    """The conversion of one recording: `step` adds the records of one step to the journal.

    Other attributes describe the cluster after the last step, such as running brokers, open sessions and state znodes.
    """

    def __init__(self, recording: Recording) -> None:
        self.journal, self.seen = Journal(), Leaderships()
        self.states: dict[str, dict[str, Any]] = {}  # partition -> the content of its state znode
        self.versions: dict[str, int] = {}  # path of each existing znode -> its version
        self.incarnations: dict[By, int] = {}
        self.alive: set[By] = set()
        self.sessions: dict[By, list[int]] = {}
        self.opened = self.zxid = 0
        self.nameless: By = recording["brokers"][0]  # the broker of unnamed sessions: it has failed to start
        self.controller_epochs: dict[By, int] = {}  # broker -> its controller epoch, if it is controller in its own view
        self.known_controllers: dict[int, tuple[int, int]] = {}  # broker -> the latest controller epoch and id in a request to it
        self.early: dict[int, RecordId] = {}  # requests that arrive after their sender has ended
        known = {name: recording.get(name) for name in ("release", "scenario", "brokers", "session_timeout_ms", "unclean")}
        self._log(WORLD, "run", None, journal_version=JOURNAL_VERSION, world=RECORDED, **known)

    def _log(self, by: By, kind: str, cause: RecordId | None, **fields: Any) -> RecordId:
        node, incarnation = (by, self.incarnations.get(by, 1)) if isinstance(by, int) else (OUTSIDE, 0)
        return self.journal.add(node, incarnation, kind, cause, len(self.journal), fields)

    # ---------------------------------------------------------------- steps

    def step(self, number: int, step: Step, later: Sequence[Step]) -> None:
        self.act = self._log(WORLD, "scenario", None, step=number, do=step["do"])
        self.causes, self.exited = Causes(self.act), step.get("exited", {})
        self.nameless = next((int(n) for n in (*self.exited, *started(step))), self.nameless)
        for item in interleave(step, self.seen, later):
            PERFORM[item.kind](self, item)

    def _start(self, item: Item) -> None:
        n = item.what
        if n in self.alive:  # its process runs already
            return
        self.incarnations[n] = self.incarnations.get(n, 0) + 1
        self.alive.add(n)
        self.known_controllers.pop(n, None)
        self.causes.life[n] = self._log(WORLD, "start", self.act, broker=n, incarnation=self.incarnations[n])

    def _stop(self, item: Item) -> None:
        n = item.what
        if n in self.alive:
            exit_code = self.exited.get(str(n), 0) if item.kind == "exit" else None
            self.causes.life[n] = self._log(WORLD, "stop", self.act, broker=n, exit_code=exit_code)
        self.alive.discard(n)
        self.controller_epochs.pop(n, None)

    def _freeze(self, item: Item) -> None:
        self._log(WORLD, item.kind, self.act, broker=item.what)

    # ---------------------------------------------------------------- writes

    def _write(self, item: Item) -> None:
        group = item.what
        first = group[0]
        if first["op"] in SESSIONS:
            SESSIONS[first["op"]](self, first)
            return
        self.zxid += 1
        if item.move is None or not self._record_write_and_move(first, item.move):
            record = self._transaction(group)
            if item.move is not None:
                self._record_move(item.move, record, first["data"])

    def _open(self, write: dict[str, Any]) -> None:
        n = self._node(write["by"])
        self.opened += 1
        self.sessions.setdefault(n, []).append(self.opened)
        again = n in self.causes.life or n not in self.alive
        record = self._log(n, "open", self.causes.life.get(n), session=self.opened)
        self.causes.life[n] = record
        if not again and n in self.controller_epochs:  # in every release a controller resigns after its session was replaced
            self._set_controller(n, -1, record)

    def _close(self, write: dict[str, Any]) -> None:
        n = self._node(write["by"])
        session = self.sessions[n].pop(0) if self.sessions.get(n) else 0
        self.zxid += 1
        cause = self.causes.life.get(n) or (self._log(n, "session_lost", None) if n in self.alive else self.act)
        record = self._log(WORLD, "close", cause, broker=n, session=session, deleted=write["deleted"], zxid=self.zxid)
        for path in write["deleted"]:
            del self.versions[path]
            self.causes.deleted[path] = record
        self.causes.triggered_by(record, broker=n)

    def _rejected(self, write: dict[str, Any]) -> None:
        """Add a record of `write`, a transaction that ZooKeeper refused; the recording has only its author and error codes."""
        n = self._node(write["by"])
        error = next((ERRORS.get(code, str(code)) for code in write["codes"] if code not in (None, 0, -2)), "refused")
        cause = self.causes.of_write(n, "")
        self._log(n, "write", cause, ops=[], zxid=None, error=error, epoch_zk_version=-1, codes=write["codes"])

    def _transaction(self, group: list[dict[str, Any]]) -> RecordId:
        first = group[0]
        n = self._node(first["by"])
        ops = [self._op(write) for write in group]
        record = self._log(n, "write", self._cause_of(first), ops=ops, zxid=self.zxid, error=None, epoch_zk_version=_fence(first))
        self._note(group, n, record)
        return record

    def _op(self, write: dict[str, Any]) -> list[Any]:
        kind, path = write["op"], write["path"]
        if kind == "delete":
            del self.versions[path]
            return [kind, path, "", None, False]
        if kind == "set" and path not in self.versions:
            raise ValueError(f"{path} is written and not there")
        self.versions[path] = write["version"] if kind == "set" else 0
        return [kind, path, text_of(write["data"]), self.versions[path], write.get("ephemeral", False)]

    def _note(self, group: list[dict[str, Any]], n: By, record: RecordId) -> None:
        """Store the journal record `record`, with the ZooKeeper writes `group`, as a possible cause of later records.

        `n` is the broker that wrote. For example, the record of a created `/controller` is the cause of an election.
        """
        for write in group:
            path, tp = write["path"], state_key(write["path"])
            if tp and isinstance(write.get("data"), dict):
                before, self.states[tp] = self.states.get(tp), write["data"]
                if before and is_isr_change(before, write["data"]):
                    self.causes.isr[tp, tuple(write["data"]["isr"])] = record
            if write["op"] == "delete":
                self.causes.deleted[path] = record
            if write["op"] == "create" and path == CONTROLLER:
                self.causes.elected[n] = record
            if n == WORLD or path.startswith(f"{BROKER_IDS}/"):
                self.causes.triggered_by(record, broker=n, topic=_topic(path))
            # With this write `n` becomes controller in its own memory.
            if path == CONTROLLER_EPOCH and n in self.alive and str(write.get("data", "")).isdecimal():
                self._set_controller(n, int(write["data"]), record)

    def _set_controller(self, n: By, epoch: int, cause: RecordId) -> None:
        """Record that broker `n` becomes controller with this epoch in its own view, and that the former controller resigns.

        For epoch -1 record that `n` resigns. `cause` is the cause of these records.
        """
        learn = {"context": "controller", "container": "value", "clear": False, "remove": []}
        if epoch == -1:
            del self.controller_epochs[n]
            self._log(n, "update", cause, field="active_controller_id", put=-1, **learn)
            return
        for other in [b for b in self.controller_epochs if b != n and b in self.alive]:
            self._set_controller(other, -1, cause)
        self.controller_epochs[n] = epoch
        self._log(n, "update", cause, field="active_controller_id", put=n, **learn)
        self.causes.controller_elected(n, self._log(n, "update", cause, field="controller_epoch", put=epoch, **learn))

    def _cause_of(self, write: dict[str, Any]) -> RecordId | None:
        n, path = self._node(write["by"]), write["path"]
        tp, value = state_key(path), write.get("data")
        before = self.states.get(tp or "")
        if tp and before and isinstance(value, dict) and is_isr_change(before, value):
            joined = [b for b in value["isr"] if b not in before["isr"]]
            return next((r for b in joined if (r := self.causes.last_request.get((tp, b)))), None)
        if path.startswith(f"{ISR_CHANGE_NOTIFICATION}/"):
            return next(reversed(self.causes.isr.values()), None)
        return self.causes.of_write(n, path)

    def _node(self, by: By) -> By:
        if by == UNNAMED:
            return self.nameless
        return by if isinstance(by, int) else WORLD

    # ---------------------------------------------------------------- transitions

    def _move(self, item: Item) -> None:
        self._record_move(item.what, self.causes.of_move(item.what), None)

    def _record_write_and_move(self, write: dict[str, Any], move: dict[str, Any]) -> bool:
        """Record a transition and its write of a state znode as one journal record `change`, and return True.

        Return False, and record nothing, if the znode's data are not in Kafka's format.
        """
        if list(write["data"]) != STATE_FIELDS or write["data"]["version"] != 1:
            return False
        self._op(write)
        fields = {"write": write["op"], "zxid": self.zxid, "epoch_zk_version": _fence(write)}
        record = self._record_move(move, self.causes.of_move(move), write["data"], **fields)
        self._note([write], self._node(write["by"]), record)
        return True

    def _record_move(self, move: dict[str, Any], cause: RecordId | None, value: Any, **written: Any) -> RecordId:
        machine, subject, n = move["machine"], move["subject"], move["by"]
        transition = {
            "machine": machine, "subject": subject, "source": long(machine, move["from"]), "target": long(machine, move["to"]),
        }  # fmt: skip
        if self.controller_epochs.get(n) != move["epoch"] and n in self.alive:  # the recording begins in the middle of its term
            self._set_controller(n, move["epoch"], self.act)
        if move.get("failed"):
            record = self._log(n, "failed_change", cause, reason=NOT_KNOWN, illegal=False, **transition)
        else:
            tp = subject.partition("@")[0] if machine == "replica" else subject
            held = value and _hosted_value(value, self.versions[state_path(TopicPartition.parse(tp))])
            record = self._log(n, "change", cause, leadership=held, rule=None, **({"write": None} | written), **transition)
        self.causes.moved(move, record)
        return record

    # ---------------------------------------------------------------- requests

    def _request(self, item: Item) -> None:
        r = item.what
        by, to, api = r["by"], r["to"], r["api"]
        sent = self.early.pop(id(r), None) or self._sent(item)
        received = self._log(to, "receive", sent, api=api, sender=by)
        if api == "LeaderAndIsr":
            self.causes.last_request |= {(tp, to): received for tp in r["partitions"]}
        self._update_controller(to, by, r["controller_epoch"], received)
        if by in self.alive:
            self._log(WORLD, "response", received, channel=f"{by}>{to}", api=api)

    def _sent(self, item: Item) -> RecordId:
        r = item.what
        by, api = r["by"], r["api"]
        isrs = ((tp, tuple(entry["isr"])) for tp, entry in r["partitions"].items() if api == "UpdateMetadata")
        changed = next((record for key in isrs if (record := self.causes.isr.get(key))), None)
        cause = changed or self.causes.last.get(by) or self.causes.latest
        record = self._log(by, "send", cause, requests=batch(r))
        if item.kind == "sent":
            self.early[id(r)] = record
        return record

    def _update_controller(self, n: int, controller: int, epoch: int, cause: RecordId) -> None:
        """Not for a broker that has a later controller epoch, or does not run."""
        before = self.known_controllers.get(n, (0, -1))
        if n not in self.alive or before == (epoch, controller) or epoch < before[0]:
            return
        self.known_controllers[n] = (epoch, controller)
        for field, put in (("controller_id", controller), ("controller_epoch", epoch)):
            self._log(n, "update", cause, context="broker", field=field, container="value", clear=False, remove=[], put=put)


PERFORM = {
    "start": Replay._start, "stop": Replay._stop, "exit": Replay._stop, "freeze": Replay._freeze, "thaw": Replay._freeze,
    "write": Replay._write, "move": Replay._move, "request": Replay._request, "sent": Replay._sent,
}  # fmt: skip
SESSIONS = {"open": Replay._open, "close": Replay._close, "rejected": Replay._rejected}


class Causes:
    """The journal records of one step that can be causes of later records, such as a broker's start or an election."""

    def __init__(self, act: RecordId) -> None:
        self.act = self.latest = act
        self.life: dict[By, RecordId] = {}  # broker -> the latest record of its start, stop or session
        self.deleted: dict[str, RecordId] = {}  # path -> the record that deleted the znode
        self.elected: dict[By, RecordId] = {}  # broker -> its creation of /controller
        self.last_request: dict[tuple[str, int], RecordId] = {}  # partition and receiver -> `receive` of the last LeaderAndIsr
        self.isr: dict[tuple[str, tuple[int, ...]], RecordId] = {}  # partition and ISR -> the change to this ISR
        self.last: dict[By, RecordId] = {}  # controller -> its last transition since the trigger
        self.about: dict[Any, RecordId] = {}  # triggers by broker and topic; last transitions by controller and partition
        self.terms: dict[By, RecordId] = {}  # broker -> the record with which its term as controller begins

    def triggered_by(self, record: RecordId, **about: Any) -> None:
        """The cause of controllers' records until the next call; of records `about` a broker or topic also later."""
        self.latest = record
        self.last.clear()
        self.about = {key: r for key, r in self.about.items() if key[0] != "moved"}
        self.about |= dict.fromkeys(about.items(), record)

    def controller_elected(self, n: By, record: RecordId) -> None:
        """Set this record, which elects broker `n`, as the cause of the new controller's later records."""
        self.triggered_by(record)
        self.about.clear()
        self.terms[n] = record

    def moved(self, move: dict[str, Any], record: RecordId) -> None:
        self.last[move["by"]] = self.about["moved", (move["by"], _partition(move))] = record

    def of_move(self, move: dict[str, Any]) -> RecordId:
        """Return the journal record that caused the transition `move`: the controller's last transition of the partition.

        Without one, it is the latest record that `triggered_by` has stored for the replica's broker; else for the topic; else the
        latest of all.
        """
        tp = _partition(move)
        broker = int(move["subject"].rpartition("@")[2]) if move["machine"] == "replica" else None
        keys = (("moved", (move["by"], tp)), ("broker", broker), ("topic", tp.rpartition("-")[0]))
        return next((self.about[key] for key in keys if key in self.about), self.latest)

    def of_write(self, n: By, path: str) -> RecordId:
        """Return the journal record that caused a write to `path` by `n`, a broker or a client."""
        # The action of the scenario's step.
        if n == WORLD:
            return self.act
        # The election follows the deletion of the znode.
        if path == CONTROLLER and path in self.deleted:
            return self.deleted[path]
        if path == CONTROLLER_EPOCH and n in self.elected:
            return self.elected[n]
        # The latest start, stop or session of this broker.
        if n in self.life and n not in self.terms:
            return self.life[n]
        topic = ("topic", _topic(path))
        return self.last.get(n) or self.about.get(topic) or self.latest


def _partition(move: dict[str, Any]) -> str:
    subject: str = move["subject"]
    return subject.rpartition("@")[0] if move["machine"] == "replica" else subject


def _topic(path: str) -> str | None:
    parts = path.split("/")
    return parts[3] if path.startswith((f"{TOPICS}/", "/config/topics/", "/admin/delete_topics/")) else None


def _fence(write: dict[str, Any]) -> int:
    """-1: no check. The recording has the checked version of `/controller_epoch` plus 1."""
    checked: int = write.get("checked", {}).get(CONTROLLER_EPOCH, 0)
    return checked - 1


def _hosted_value(value: dict[str, Any], zk_version: int) -> dict[str, Any]:
    kept = {name: value[name] for name in ("leader", "isr", "leader_epoch")}
    return {**kept, "zk_version": zk_version, "controller_epoch": value.get("controller_epoch", 0)}


def batch(r: dict[str, Any]) -> dict[str, Any]:
    """Return a recorded request, of one API to one receiver, in the form of the field `requests` of a journal record `send`.

    This field can have requests of several APIs to several receivers.
    """
    api, to, partitions = r["api"], str(r["to"]), r["partitions"]
    head = {"controller_id": r["by"], "controller_epoch": r["controller_epoch"], "live_brokers": r.get("live_brokers", [])}
    if api == "UpdateMetadata":
        return {**head, "update_metadata": {"partitions": partitions, "to": [r["to"]]}}
    extra = {name: r[name] for name in ("live_leaders", "type", "delete") if name in r}
    if api == "StopReplica":
        stopped = {tp: {**entry, **({"delete": r["delete"]} if "delete" in r else {})} for tp, entry in partitions.items()}
        return {**head, "stop_replica": {"to": {to: stopped}, **extra}}
    values = [{"partition": tp, **entry} for tp, entry in partitions.items()]
    return {**head, "leader_and_isr": {"values": values, "to": {to: list(range(len(values)))}, **extra}}
