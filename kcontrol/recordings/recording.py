"""Reads and checks files with recordings of real brokers, and converts a journal into the format of a recording.

A recording is a dict: `release`, `scenario`, `brokers`, `session_timeout_ms`, `unclean` and `steps`; a step has `do`, `writes`,
`transitions`, `requests` and `znodes`. `notebooks/recordings/README.md` describes each field.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from kcontrol.core.errors import UserError
from kcontrol.core.model import LeaderAndIsr, TopicPartition
from kcontrol.core.znodes import BROKER_IDS, CONTROLLER_EPOCH, encode_state, state_path
from kcontrol.journal.fold import Fold
from kcontrol.journal.journal import Record
from kcontrol.journal.journal_file import LONGEST_BYTES, opened
from kcontrol.journal.record_fields import BrokerId, BrokerIds, Int32, Partition, Subject
from kcontrol.recordings.recorded_words import TRANSLATED
from kcontrol.views.kafka_words import NO_LEADERSHIP, NO_LEADERSHIP_LOGGED_SINCE

TOOL, UNNAMED = "tool", "unnamed"
RECORDED = "recorded"
"""The `world` of a journal that was made from a recording."""

Recording = dict[str, Any]
Step = dict[str, Any]

HEAD = ("release", "scenario", "brokers", "session_timeout_ms", "unclean")

# The first release whose request log has this field; the recordings are made from this log.
FIELDS_SINCE = {
    "zk_version": "0.10.2", "is_new": "1.0", "offline_replicas": "1.0", "adding_replicas": "2.4", "removing_replicas": "2.4",
}  # fmt: skip
TYPE_SINCE, DELETE_PER_PARTITION_SINCE = "2.8", "2.6"
SOURCES_LOGGED_SINCE = (0, 8, 1)  # the first release that logs the state before a transition

MASKS = (
    (re.compile(r'"timestamp":"\d+"'), '"timestamp":"<ms>"'),
    (re.compile(r'"port":\d+'), '"port":"<port>"'),
    (re.compile(r"(PLAINTEXT://[^:\"]+):\d+"), r"\1:<port>"),
)


# ---------------------------------------------------------------- the format, to check files


class _Write(msgspec.Struct):
    # "tool": an admin tool; "unnamed": a session that has created no broker registration.
    by: BrokerId | Literal["tool", "unnamed"]
    # "open" and "close" are the begin and the end of a session, "rejected" is a transaction that failed as a whole.
    op: Literal["create", "set", "delete", "open", "close", "rejected"]
    path: str = ""
    data: dict[str, Any] | str | None = None
    # Of a "create".
    ephemeral: bool = False
    # After a "set".
    version: Int32 = 0
    # The number of the transaction in the step, 0 for a single write.
    multi: Int32 = 0
    # The paths of the ephemeral znodes that a "close" deletes.
    deleted: list[str] = []
    # ZooKeeper's error codes of the parts of a "rejected" transaction.
    codes: list[int | None] = []
    # The version that each znode would get next, for the znodes whose version the transaction checks.
    checked: dict[str, int] = {}


class _Transition(msgspec.Struct):
    by: BrokerId
    epoch: Int32
    machine: Literal["partition", "replica"]
    # "t-0" for a partition, "t-0@2" for a replica.
    subject: Subject
    # The state before, None where the release does not log it.
    source: str | None = msgspec.field(name="from")
    to: str
    # Attempted and logged as an error, not done.
    failed: bool = False


class _Request(msgspec.Struct):
    # The controller.
    by: BrokerId
    # The receiver.
    to: BrokerId
    api: Literal["LeaderAndIsr", "UpdateMetadata", "StopReplica"]
    controller_epoch: Int32
    # Partition to the fields of its entry in the request.
    partitions: dict[Partition, dict[str, Any]]


class _Znode(msgspec.Struct):
    data: Any
    version: int
    # The id of the broker whose session owns the znode; None for a persistent znode.
    ephemeral_owner: int | str | None


class _Answer(msgspec.Struct):
    # The response to AlterPartitionReassignments, with the protocol's error codes.
    error: Int32
    partitions: dict[Partition, Int32]


class _Step(msgspec.Struct):
    # The actions of the step, such as {"kill": [1]}.
    do: dict[str, Any]
    # In the order of their zxids.
    writes: list[_Write]
    transitions: list[_Transition]
    # In the order in which the receivers completed the responses.
    requests: list[_Request]
    # All znodes after the step, by path.
    znodes: dict[str, _Znode]
    answer: _Answer | None = None


class _Recording(msgspec.Struct):
    release: str
    scenario: str
    brokers: BrokerIds
    session_timeout_ms: Int32
    # unclean.leader.election.enable; None for the release's default.
    unclean: bool | None
    steps: list[_Step]


def is_recording(path: str | Path) -> bool:
    """Valid or not: the file begins with a field "release"."""
    try:
        with opened(path) as file:
            first = file.readline(LONGEST_BYTES)
            if b'"kind"' in first and b'"at_ms"' in first:
                return False
            return b'"release"' in first + file.read(LONGEST_BYTES)
    except OSError:
        return False


def load(path: str | Path) -> Recording:
    """Raises UserError for a file that cannot be read, or has no valid recording."""
    return parse(content_of(path), str(path))


def content_of(path: str | Path) -> bytes:
    """Return the bytes of a recording's file. Raises UserError if the file cannot be read or is too large."""
    try:
        with opened(path) as file:
            content = file.read(LONGEST_BYTES + 1)
    except OSError as error:
        raise UserError(f"The recording {path} cannot be read: {error.strerror}.") from None
    if len(content) > LONGEST_BYTES:
        raise UserError(f"{path} is not a recording of brokers: it has more than {LONGEST_BYTES:,} bytes.")
    return content


def parse(content: bytes, name: str) -> Recording:
    """Return the recording in the bytes of a file called `name`. Raises UserError if they are no valid recording."""
    try:
        msgspec.json.decode(content, type=_Recording)
        found: Recording = msgspec.json.decode(content)
        since(found["release"])
    except msgspec.ValidationError as error:
        raise UserError(f"{name} is not a recording of brokers: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{name} is broken JSON: {error}.") from None
    except ValueError as error:
        raise UserError(f"{name} is not a recording of brokers: {error}.") from None
    return found


# ---------------------------------------------------------------- data and names


def since(release: str) -> tuple[int, ...]:
    """Return a release as numbers that can be compared, such as (2, 8, 2) for "2.8.2". Raises ValueError for any other text."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+){1,3}", release):
        raise ValueError(f"{release!r} is not a release: write it like 2.8.2 or 0.8.1")
    return tuple(map(int, release.split(".")))


def data(path: str, text: str) -> Any:
    """Return the content of the znode `path`: `text` parsed if it is a JSON object, other text unchanged, no text as None."""
    # Values that differ from run to run become placeholders, such as "<ms>" for a time.
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    value = _object(text) or text or None
    return {**value, "id": "<id>"} if path == "/cluster/id" and isinstance(value, dict) else value


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text) if text.startswith("{") else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def text_of(value: Any) -> str:
    """Return the text of a znode whose content in a recording is `value`: JSON for an object, "" for None."""
    return (
        value if isinstance(value, str) else "" if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    )


def short(state: str) -> str | None:
    """As recordings have it: "Online" for "OnlinePartition"; states of deletion keep their full names."""
    return state if state.startswith("ReplicaDeletion") else state.removesuffix("Partition").removesuffix("Replica") or None


def long(machine: str, state: str | None) -> str:
    """As a journal has it: "OnlinePartition" for "Online"; "" for None."""
    if state is None or state.startswith("ReplicaDeletion"):
        return state or ""
    return {"NotExists": "NonExistent"}.get(state, state) + machine.capitalize()


def as_logged_by_0_8_0(move: dict[str, Any], failed: dict[str, Any]) -> dict[str, Any]:
    """Return the transition `move` as 0.8.0 logs it: with another state before the transition, in the key "from".

    For a replica 0.8.0 logs no such state (None). For a partition it logs a wrong state, unless the transition has failed
    (`failed` is not {}).

    Source: stateChangeLogger in ReplicaStateMachine.handleStateChange and PartitionStateMachine.handleStateChange (0.8.0).
    """
    if move["machine"] == "replica":
        return {**move, "from": None}
    # For a partition 0.8.0 logs a source state that depends on the target alone, and the true state if the transition fails.
    logged = {"New": "NotExists", "Online": "Online", "Offline": "Online", "NonExistent": "Offline"}
    return move if failed else {**move, "from": logged[move["to"]]}


def state_key(path: str) -> str | None:
    """Return the partition, as in `t-0`, whose state znode has this path; None for any other path."""
    found = re.fullmatch(r"/brokers/topics/([^/]+)/partitions/(\d+)/state", path)
    return f"{found[1]}-{found[2]}" if found else None


# ---------------------------------------------------------------- a journal as a recording


def of_journal(records: Sequence[Record]) -> Recording:
    """Return a journal in the format of the recordings, with one step for each step of its scenario.

    Raises UserError for a journal without a scenario.
    """
    run = records[0].to_json().fields if records else {}
    marks = [at for at, record in enumerate(records) if record.kind == "scenario"]
    if not marks:
        raise UserError("This run has no scenario and so no steps to compare: make a run with Lab.play(recording).")
    reader, steps = _Reader(run["release"]), []
    reader.step(records[: marks[0]])
    for start, end in zip(marks, [*marks[1:], len(records)], strict=True):
        steps.append({"do": records[start].to_json().fields["do"], **reader.step(records[start:end])})
    mark_unnamed_sessions(write for step in steps for write in step["writes"])
    return {name: run.get(name) for name in HEAD} | {TRANSLATED: True, "steps": steps}


def mark_unnamed_sessions(written: Iterable[dict[str, Any]]) -> None:
    """Set the author `by` of each write to "unnamed" if its session has created no broker registration."""
    sessions: dict[Any, list[dict[str, Any]]] = {}
    for write in written:
        by = write["by"]
        if write["op"] == "open":
            sessions[by] = []
        if by in sessions:
            sessions[by].append(write)
        if write["op"] == "close":
            own = sessions.pop(by, [])
            if own and not any(w["op"] == "create" and w["path"].startswith(f"{BROKER_IDS}/") for w in own):
                for w in own:
                    w["by"] = UNNAMED


class _Reader:
    """The converter of a journal into recorded steps.

    It stores what later steps need: the cluster's state, each controller's epoch, the sent requests, and the requests whose
    responses are delayed.
    """

    def __init__(self, release: str) -> None:
        self.release, self.fold = release, Fold()
        self.epochs: dict[int, int] = {}
        self.sent: dict[Any, dict[str, Any]] = {}  # `send` record -> its requests
        self.held: dict[Any, dict[str, Any]] = {}  # by the record that delays its response

    def step(self, records: Sequence[Record]) -> Step:
        self.fold.all(records)
        plain = [record.to_json() for record in records if record.kind in READ]
        return {
            "writes": [write for record in plain for write in writes(record)], "transitions": list(self._transitions(plain)),
            "requests": list(self._requests(plain)), "znodes": self._znodes(), **answered(plain),
        }  # fmt: skip

    def _znodes(self) -> dict[str, Any]:
        return {
            path: {"data": data(path, text), "version": version, "ephemeral_owner": owner}
            for path, (text, version, owner) in self.fold.state["znodes"].items()
        }

    def _transitions(self, records: Iterable[Record]) -> Iterator[dict[str, Any]]:
        """Yield the transitions as dicts: by (the controller), epoch, machine, subject, from and to.

        The subject is a partition or a replica. A refused transition also has `failed`.
        """
        for record in records:
            f, node = record.fields, record.id.node
            if record.kind == "update" and (f["context"], f["field"]) == ("controller", "controller_epoch"):
                self.epochs[node] = f["put"]
            elif f.get("rule") == NO_LEADERSHIP and since(self.release) < NO_LEADERSHIP_LOGGED_SINCE:
                continue
            elif record.kind in ("change", "failed_change"):
                move = {"by": node, "epoch": self.epochs[node], "machine": f["machine"], "subject": f["subject"]}
                move |= {"from": short(f["source"]), "to": short(f["target"])}
                failed = {"failed": True} if record.kind == "failed_change" else {}
                yield (move if since(self.release) >= SOURCES_LOGGED_SINCE else as_logged_by_0_8_0(move, failed)) | failed

    def _requests(self, records: Iterable[Record]) -> Iterator[dict[str, Any]]:
        """Yield the requests of controllers, in the order in which their receivers completed the responses.

        Each is a dict with the sender `by`, the receiver `to`, and the fields that `request` returns.
        """
        records = list(records)
        late = {record.cause: record.id for record in records if record.kind == "delay_response"}
        for record in records:
            if record.kind == "send":
                self.sent[record.id] = record.fields["requests"]
            elif record.kind == "receive":
                api, to = record.fields["api"], record.id.node
                done = {"by": record.fields["sender"], "to": to, **request(self.sent[record.cause], api, to, self.release)}
                if record.id not in late:
                    yield done
                else:
                    self.held[late[record.id]] = done
            elif record.kind == "send_delayed_response":
                yield self.held.pop(record.cause)


def answered(records: Iterable[Record]) -> dict[str, Any]:
    """The first response to AlterPartitionReassignments: {"answer": {"error": 0, ...}}, {} without one."""
    for record in records:
        body = record.fields.get("body")
        if record.kind == "respond" and record.fields["correlation_id"].startswith("admin-") and isinstance(body, dict):
            codes = {tp: ERROR_CODES[name] for tp, name in body["partitions"].items()}
            return {"answer": {"error": ERROR_CODES[body["error"]], "partitions": codes}}
    return {}


# Source: Errors (2.8).
ERROR_CODES = {
    "NONE": 0, "UNKNOWN_SERVER_ERROR": -1, "UNKNOWN_TOPIC_OR_PARTITION": 3, "INVALID_REPLICA_ASSIGNMENT": 39,
    "NOT_CONTROLLER": 41, "NO_REASSIGNMENT_IN_PROGRESS": 85,
}  # fmt: skip

READ = frozenset((
    "respond", "open", "close", "write", "change", "failed_change", "update", "send", "receive", "delay_response",
    "send_delayed_response",
))  # fmt: skip


def writes(record: Record) -> Iterator[dict[str, Any]]:
    """Yield the writes of a journal record, such as {"by": 1, "op": "set", "path": "/controller_epoch", "data": 2}.

    The opening and the end of a session are writes too.
    """
    f, by = record.fields, TOOL if record.id.broker is None else record.id.broker
    if record.kind == "open":
        yield {"by": by, "op": "open"}
    elif record.kind == "close":
        yield {"by": f["broker"], "op": "close", "deleted": f["deleted"]}
    elif record.kind == "write" and f["error"] is None:
        for kind, path, text, version, ephemeral in f["ops"]:
            yield from _write(by, f["epoch_zk_version"], kind, path, text, version, ephemeral)
    elif record.kind == "write" and "codes" in f:
        yield {"by": by, "op": "rejected", "codes": f["codes"]}
    elif record.kind == "change" and f["write"]:
        v, tp = f["leadership"], TopicPartition.parse(f["subject"].partition("@")[0])
        value = LeaderAndIsr.from_json(v)
        yield from _write(
            by, f["epoch_zk_version"], f["write"], state_path(tp), encode_state(value).decode(), value.zk_version, False
        )


def _write(by: int | str, fence: int, kind: str, path: str, text: str, version: int | None, ephemeral: bool) -> Iterator[Any]:
    if kind == "check":
        return
    extra: dict[str, Any] = {} if kind == "delete" else {"data": data(path, text)}
    extra |= {"ephemeral": ephemeral} if kind == "create" else {"version": version} if kind == "set" else {}
    # ZooKeeper's transaction log has the version that a checked znode would get next.
    extra |= {"checked": {CONTROLLER_EPOCH: fence + 1}} if fence != -1 else {}
    yield {"by": by, "op": kind, "path": path, **extra}


def request(batch: dict[str, Any], api: str, to: int, release: str) -> dict[str, Any]:
    """Return the request `api` to the broker `to` in the form of recordings, such as {"api": "StopReplica", ...}.

    `batch` is the field `requests` of a journal record `send`; `release` determines which fields exist.
    """
    head = {"api": api, "controller_epoch": batch["controller_epoch"]}
    if api == "UpdateMetadata":
        entries = _entries(batch["update_metadata"]["partitions"], release)
        return head | {"partitions": entries, "live_brokers": sorted(batch["live_brokers"])}
    if api == "StopReplica":
        return head | _stop(batch["stop_replica"], to, release)
    part = batch["leader_and_isr"]
    values = [part["values"][i] for i in part["to"][str(to)]]
    entries = _entries({v["partition"]: {k: x for k, x in v.items() if k != "partition"} for v in values}, release)
    live = part.get("live_leaders", sorted({v["leader"] for v in values} & set(batch["live_brokers"])))
    kind = {"type": part.get("type", 0)} if since(release) >= since(TYPE_SINCE) else {}
    return head | {"partitions": entries, "live_leaders": live} | kind


def _entries(partitions: dict[str, dict[str, Any]], release: str) -> dict[str, Any]:
    unknown = {name for name, first in FIELDS_SINCE.items() if since(release) < since(first)}
    return {tp: {name: value for name, value in entry.items() if name not in unknown} for tp, entry in partitions.items()}


def _stop(batch: dict[str, Any], to: int, release: str) -> dict[str, Any]:
    stopped = batch["to"][str(to)]
    if since(release) >= since(DELETE_PER_PARTITION_SINCE):
        return {"partitions": dict(stopped)}
    delete = batch.get("delete", any(entry["delete"] for entry in stopped.values()))
    return {"partitions": {tp: {} for tp in stopped}, "delete": delete}
