"""Yields the rows of tables about partitions: leaders, ISRs, elections, transitions, and times without a leader."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from kcontrol.core.model import ReplicaAssignment
from kcontrol.core.znodes import parse_state_path
from kcontrol.lab.history.entries import Entries, Entry, Row, StoredState, interval
from kcontrol.lab.history.topics import Assignments, assignments, deletion_times
from kcontrol.views import decisions

KINDS = {
    "preferred": "preferred", "controlled_shutdown": "shutdown", "reassign": "reassignment", "offline": "clean",
    "unclean": "unclean",
}  # fmt: skip
"""By the rule of an election, its kind in the table."""

ELECTING = ("OfflinePartition", "OnlinePartition")


def stored_states(run: Entries) -> Iterator[StoredState]:
    """Yield each value that was written to a partition's state znode, and each deletion of the znode, in the journal's order."""
    for entry in run.of("change", "write"):
        fields = entry.r.fields
        is_move = entry.r.kind == "change" and fields["machine"] == "partition"
        for name, value in decisions.written(entry.r).items():
            epochs = (value.get("leader_epoch"), value.get("controller_epoch"))
            source = fields["source"] if is_move else None
            yield StoredState(entry, name, source, fields.get("rule") or None, value["leader"], list(value["isr"]), *epochs)
        if entry.r.kind == "write" and fields["error"] is None:
            for op in fields["ops"]:
                if op[0] == "delete" and (tp := parse_state_path(op[1])) is not None:
                    yield StoredState(entry, str(tp), None, None, None, None, None, None)


def _with_former(run: Entries) -> Iterator[tuple[StoredState, StoredState | None]]:
    """Yield each value written to a state znode with the znode's value before, None for the znode's first value."""
    former: dict[str, StoredState] = {}
    for state in stored_states(run):
        yield state, former.get(state.partition)
        former[state.partition] = state


def leaderships(run: Entries) -> Iterator[Row]:
    """Each write that changes the leader of a partition in ZooKeeper; -1 is no leader.

    The first leader has a row, the deletion of the state znode none.
    """
    for state, former in _with_former(run):
        if state.leader is not None and state.leader != (former and former.leader):
            at_ms = state.entry.time_ms
            times = {"at": at_ms if run.clock == "wall" else None, "at_ms": at_ms if run.clock == "virtual" else None}
            row = {"leader": state.leader, "controller_epoch": state.controller_epoch}
            yield state.entry.evidence | times | _written(state) | row


def _written(state: StoredState) -> Row:
    return {"zxid": state.zxid, "partition": state.partition, "leader_epoch": state.leader_epoch}


def isr_history(run: Entries) -> Iterator[Row]:
    """Each write that changes the members or the order of a partition's ISR in ZooKeeper.

    The first ISR has a row, the deletion of the state znode none.
    """
    for state, former in _with_former(run):
        before = former and former.isr
        if state.isr is not None and state.isr != before:
            row = {"written_by": state.entry.r.id.broker, "isr_before": before, "isr": state.isr}
            row["entered"] = [b for b in state.isr if b not in (before or ())]
            row["left"] = [b for b in before or () if b not in state.isr]
            yield state.entry.evidence | _written(state) | row


def partition_history(run: Entries) -> Iterator[Row]:
    """Each write that changes a partition in ZooKeeper: assignment, leader and ISR after it.

    The replicas are those in the topic znode, leader and ISR those in the state znode; missing where the znode does not exist.
    `written_by` is missing for a write of a client.
    """
    states: dict[int, list[StoredState]] = defaultdict(list)
    for state in stored_states(run):
        states[state.entry.n].append(state)
    topics, held = assignments(run), dict[str, Row]()
    for entry in run.of("change", "write", "close"):
        changed: dict[str, Row] = {state.partition: _led(state) for state in states.get(entry.n, ())}
        for topic, assigned in topics.get(entry.n, {}).items():
            for name in {*assigned, *(name for name in held if name.rpartition("-")[0] == topic)}:
                changed[name] = _assigned(assigned.get(name)) | changed.get(name, {})
        for name, values in changed.items():
            before = held.get(name, _assigned(None) | dict.fromkeys(("leader", "isr", "leader_epoch")))
            held[name] = before | values
            if held[name] != before:
                zxid = entry.r.fields.get("zxid")
                yield entry.evidence | {"zxid": zxid, "partition": name, "written_by": entry.r.id.broker} | held[name]


def _led(state: StoredState) -> Row:
    return {"leader": state.leader, "isr": state.isr, "leader_epoch": state.leader_epoch}


def _assigned(of: ReplicaAssignment | None) -> Row:
    names = {"replicas": "replicas", "adding_replicas": "adding", "removing_replicas": "removing"}
    return {name: list(getattr(of, field)) if of else None for name, field in names.items()}


def elections(run: Entries) -> Iterator[Row]:
    """Each election of a leader for a partition that is offline or online.

    An election is a transition to OnlinePartition; that of a new partition is none. `kind` is "clean", "unclean", "preferred",
    "shutdown" or "reassignment"; missing if a recording does not show the kind.
    """
    for state, former in _with_former(run):
        if state.source in ELECTING:
            before = {"led_before": former and former.leader, "isr_before": former and former.isr}
            # The kind is None if no strategy and no ISR before are known, as for an Online partition in a recording.
            row = {"controller": state.entry.r.id.broker, "leader": state.leader, "isr": state.isr, "kind": _kind(state, former)}
            yield state.entry.evidence | _written(state) | before | row


def _kind(state: StoredState, former: StoredState | None) -> str | None:
    if state.rule in KINDS:
        return KINDS[state.rule]
    if state.rule is None and (state.source == "OnlinePartition" or former is None or former.isr is None):
        return None
    return "clean" if former and state.leader in (former.isr or ()) else "unclean"


def transitions(run: Entries) -> Iterator[Row]:
    """Each transition of a partition or replica in a controller's memory; none that failed."""
    for entry in run.of("change"):
        fields = entry.r.fields
        partition, _, replica = fields["subject"].partition("@")
        kept = {name: fields[name] for name in ("machine", "source", "target", "write")}
        subject = {"partition": partition, "replica": int(replica) if replica else None}
        yield entry.evidence | {"controller": entry.r.id.broker, "rule": fields["rule"] or None} | subject | kept


# ---------------------------------------------------------------- times without a leader


def offline_windows(run: Entries) -> Iterator[Row]:
    """Each time in which a partition has no leader whose process runs; a frozen one does not run.

    A leader that was started again counts as running when it has applied a LeaderAndIsr request. `reason` is "death",
    "shutdown", "freeze", "deletion", "unclean election refused" or "no leader elected".
    """
    found = _OfflineWindows(run)
    for entry in run.of(*OF_WINDOWS):
        found.take(entry)
    yield from found.rows()


OF_WINDOWS = ("send", "start", "stop", "freeze", "thaw", "apply_request", "change", "failed_change", "write", "close")
"""The kinds of records that can begin or end a time without a leader."""


class _OfflineWindows:
    """Computes, from the records of a journal, the times in which a partition has no running leader."""

    def __init__(self, run: Entries) -> None:
        self._states: dict[int, list[StoredState]] = defaultdict(list)
        for state in stored_states(run):
            self._states[state.entry.n].append(state)
        self._deletions = deletion_times(run)
        self._assignments, self._assigned = assignments(run), dict[str, Assignments]()
        self._process: dict[int, tuple[str, int | None]] = {}  # by broker: its last event, and an exit code
        self._leader: dict[str, int] = {}
        self._replicas: dict[str, set[int]] = defaultdict(set)
        self._sent: dict[tuple[int, ...], Mapping[str, Any]] = {}
        self._open: dict[str, Row] = {}
        self._closed: list[Row] = []

    def take(self, entry: Entry) -> None:
        """Read the next record of the journal: it can begin or end a partition's time without a leader."""
        fields, kind = entry.r.fields, entry.r.kind
        if kind == "send":
            self._sent[tuple(entry.r.id)] = fields["requests"]
        elif kind in ("start", "stop", "freeze", "thaw"):
            self._process[fields["broker"]] = (kind, fields.get("exit_code"))
            self._of_process(entry, fields["broker"], kind)
        elif kind == "apply_request" and fields["field"] == "hosted":
            for partition in self._taken_over(entry):
                if self._leader.get(partition) == entry.r.id.node:
                    self._end(entry, partition)
        elif kind == "change" and fields["machine"] == "replica":
            partition, _, replica = fields["subject"].partition("@")
            self._replicas[partition].add(int(replica))
        elif kind == "failed_change":
            self._of_refusal(entry)
        self._assigned |= self._assignments.get(entry.n, {})
        for state in self._states.get(entry.n, ()):
            self._of_write(entry, state)

    def _of_process(self, entry: Entry, broker: int, kind: str) -> None:
        for partition in [name for name, leader in self._leader.items() if leader == broker]:
            if kind == "thaw":
                self._end(entry, partition)
            elif kind != "start":
                self._begin(entry, partition, broker)

    def _of_write(self, entry: Entry, state: StoredState) -> None:
        former = self._leader.get(state.partition)
        if state.leader is None:
            self._leader.pop(state.partition, None)
        else:
            self._leader[state.partition] = state.leader
        if state.leader is None or self._runs(state.leader):
            self._end(entry, state.partition)
        else:
            self._begin(entry, state.partition, former if state.leader < 0 else state.leader)

    def _of_refusal(self, entry: Entry) -> None:
        fields, partition = entry.r.fields, entry.r.fields["subject"]
        window = self._open.get(partition)
        is_election = (fields["source"], fields["target"]) == ELECTING
        # A reassignment may have removed a replica; without the topic's znode the present replicas are not known.
        replicas, known = self._replicas[partition], self._assigned.get(partition.rpartition("-")[0], {})
        present = known[partition].replicas if partition in known else replicas
        if window and is_election and any(map(self._runs, replicas.intersection(present))):
            window["refused_record"] = window["refused_record"] or str(entry.r.id)

    def _runs(self, broker: int) -> bool:
        return self._process.get(broker, ("", None))[0] in ("start", "thaw")

    def _taken_over(self, entry: Entry) -> Iterator[str]:
        """Yield each partition that a broker leads according to the LeaderAndIsr request that it has applied."""
        sent, broker = self._sent[tuple(entry.r.fields["request"])]["leader_and_isr"], entry.r.id.node
        # The partitions of the request that the broker has applied; None means all of them.
        chosen = entry.r.fields["partitions"]
        for position in sent["to"][str(broker)]:
            value = sent["values"][position]
            if value["leader"] == broker and (chosen is None or value["partition"] in chosen):
                yield value["partition"]

    def _begin(self, entry: Entry, partition: str, led_before: int | None) -> None:
        if partition not in self._open:
            leader = self._leader[partition]
            row = {"partition": partition, "begin": entry, "led_before": led_before, "led_after": None, "refused_record": None}
            self._open[partition] = row | {"reason": self._reason(entry, partition, leader), "end": None}

    def _reason(self, entry: Entry, partition: str, leader: int) -> str:
        topic = partition.rpartition("-")[0]
        if leader < 0 and any(
            begin.n < entry.n and (not end or end.n > entry.n) for begin, end in self._deletions.get(topic, ())
        ):
            return "deletion"
        match self._process.get(leader):
            case ("freeze", _):
                return "freeze"
            case ("stop", 0):
                return "shutdown"
            case ("stop", _):
                return "death"
        return "no leader elected"

    def _end(self, entry: Entry, partition: str) -> None:
        if partition in self._open:
            self._closed.append(self._open.pop(partition) | {"end": entry, "led_after": self._leader.get(partition)})

    def rows(self) -> Iterator[Row]:
        """Yield one row per time without a leader, in the order in which these times began; a time that goes on has no end."""
        for row in sorted((*self._closed, *self._open.values()), key=lambda row: (row["begin"].n, row["partition"])):
            times = interval(row.pop("begin"), row.pop("end"))
            refused = row["refused_record"] and row["reason"] != "deletion"
            yield times | row | ({"reason": "unclean election refused"} if refused else {})
