"""Recordings of real brokers: the format of their files, and a journal in this format.

A recording is a dict: `release`, `scenario`, `brokers`, `session_timeout_ms`, `unclean` and `steps`; a step has `do`, `writes`,
`transitions`, `requests` and `znodes`. What each holds is described beside the recordings, in `notebooks/recordings/README.md`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from kcontrol.errors import UserError
from kcontrol.model import LeaderAndIsr, TopicPartition
from kcontrol.runtime.fold import Fold
from kcontrol.runtime.journal import Record
from kcontrol.runtime.journal_file import LONGEST_BYTES, opened
from kcontrol.runtime.record_fields import BrokerId, BrokerIds, Int32, Partition, Subject
from kcontrol.views.kafka_words import NOBODY_LEADS, NOBODY_LEADS_LOGGED_SINCE
from kcontrol.znodes import BROKER_IDS, CONTROLLER_EPOCH, encode_state, state_path

TOOL, UNNAMED = "tool", "unnamed"
RECORDED = "recorded"
"""The `world` of a journal that was made from a recording."""

Recording = dict[str, Any]
Step = dict[str, Any]

HEAD = ("release", "scenario", "brokers", "session_timeout_ms", "unclean")

# Since when a field is in Kafka's request log, which is where the recordings have it from.
FIELDS_SINCE = {
    "zk_version": "0.10.2", "is_new": "1.0", "offline_replicas": "1.0", "adding_replicas": "2.4", "removing_replicas": "2.4",
}  # fmt: skip
TYPE_SINCE, DELETE_PER_PARTITION_SINCE = "2.8", "2.6"
SOURCES_LOGGED_SINCE = (0, 8, 1)  # the state in which a transition began

MASKS = (
    (re.compile(r'"timestamp":"\d+"'), '"timestamp":"<ms>"'),
    (re.compile(r'"port":\d+'), '"port":"<port>"'),
    (re.compile(r"(PLAINTEXT://[^:\"]+):\d+"), r"\1:<port>"),
)


# ---------------------------------------------------------------- the format, to refuse what is none


class _Write(msgspec.Struct):
    by: BrokerId | Literal["tool", "unnamed"]
    op: Literal["create", "set", "delete", "open", "close", "rejected"]
    path: str = ""
    data: dict[str, Any] | str | None = None
    ephemeral: bool = False
    version: Int32 = 0
    multi: Int32 = 0
    deleted: list[str] = []
    codes: list[int | None] = []
    checked: dict[str, int] = {}


class _Transition(msgspec.Struct):
    by: BrokerId
    epoch: Int32
    machine: Literal["partition", "replica"]
    subject: Subject
    source: str | None = msgspec.field(name="from")
    to: str
    failed: bool = False


class _Request(msgspec.Struct):
    by: BrokerId
    to: BrokerId
    api: Literal["LeaderAndIsr", "UpdateMetadata", "StopReplica"]
    controller_epoch: Int32
    partitions: dict[Partition, dict[str, Any]]


class _Znode(msgspec.Struct):
    data: Any
    version: int
    ephemeral_owner: int | str | None


class _Answer(msgspec.Struct):
    error: Int32
    partitions: dict[Partition, Int32]


class _Step(msgspec.Struct):
    do: dict[str, Any]
    writes: list[_Write]
    transitions: list[_Transition]
    requests: list[_Request]
    znodes: dict[str, _Znode]
    answer: _Answer | None = None


class _Recording(msgspec.Struct):
    release: str
    scenario: str
    brokers: BrokerIds
    session_timeout_ms: Int32
    unclean: bool | None
    steps: list[_Step]


def is_recording(path: str | Path) -> bool:
    """Whether a file looks as if it were meant to be a recording, whole or not; False for one that cannot be read."""
    try:
        with opened(path) as file:
            first = file.readline(LONGEST_BYTES)
            if b'"kind"' in first and b'"at_ms"' in first:
                return False
            return b'"release"' in first + file.read(LONGEST_BYTES)
    except OSError:
        return False


def load(path: str | Path) -> Recording:
    """A recording from a file. Raises UserError where the file cannot be read or holds no recording, in words that say where."""
    try:
        with opened(path) as file:
            content = file.read(LONGEST_BYTES + 1)
    except OSError as error:
        raise UserError(f"The recording {path} cannot be read: {error.strerror}.") from None
    if len(content) > LONGEST_BYTES:
        raise UserError(f"{path} is not a recording of brokers: it has more than {LONGEST_BYTES:,} bytes.")
    return parse(content, str(path))


def parse(content: bytes, name: str) -> Recording:
    """A recording from the bytes of a file called `name`. Raises UserError where they are none."""
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
    """A release as numbers that compare. Raises ValueError for what is no release."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+){1,3}", release):
        raise ValueError(f"{release!r} is no release: it should look like 2.8.2 or 0.8.1")
    return tuple(map(int, release.split(".")))


def data(path: str, text: str) -> Any:
    """What a znode holds: a JSON object parsed, other text as it is, nothing as None, and what differs from run to run masked."""
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
    """The text that a znode with this data holds."""
    return (
        value if isinstance(value, str) else "" if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    )


def short(state: str) -> str | None:
    """A state's name without the words Partition and Replica, but for the three states of deletion; None for an unknown one."""
    return state if state.startswith("ReplicaDeletion") else state.removesuffix("Partition").removesuffix("Replica") or None


def long(machine: str, state: str | None) -> str:
    """The state's whole name, as a journal has it; an unknown one is empty."""
    if state is None or state.startswith("ReplicaDeletion"):
        return state or ""
    return {"NotExists": "NonExistent"}.get(state, state) + machine.capitalize()


def as_logged_by_0_8_0(move: dict[str, Any], failed: dict[str, Any]) -> dict[str, Any]:
    """The same with what 0.8.0 says of where it began: of replicas nothing, of partitions what usually is so.

    Source: stateChangeLogger in ReplicaStateMachine.handleStateChange and PartitionStateMachine.handleStateChange (0.8.0).
    """
    if move["machine"] == "replica":
        return {**move, "from": None}
    said = {"New": "NotExists", "Online": "Online", "Offline": "Online", "NonExistent": "Offline"}
    return move if failed else {**move, "from": said[move["to"]]}


def state_key(path: str) -> str | None:
    """`t-0` for the path of its state znode, None for any other path."""
    found = re.fullmatch(r"/brokers/topics/([^/]+)/partitions/(\d+)/state", path)
    return f"{found[1]}-{found[2]}" if found else None


# ---------------------------------------------------------------- a journal as a recording


def of_journal(records: Sequence[Record]) -> Recording:
    """A journal in the format of the recordings, step by step of its scenario.

    Raises UserError for a journal that was not made by playing a scenario.
    """
    run = records[0].plain().fields if records else {}
    marks = [at for at, record in enumerate(records) if record.kind == "scenario"]
    if not marks:
        raise UserError("This run follows no scenario, so it has no steps to compare: make one with Lab.play(recording).")
    reader, steps = _Reader(run["release"]), []
    reader.step(records[: marks[0]])
    for start, end in zip(marks, [*marks[1:], len(records)], strict=True):
        steps.append({"do": records[start].plain().fields["do"], **reader.step(records[start:end])})
    give_up_names(write for step in steps for write in step["writes"])
    return {name: run.get(name) for name in HEAD} | {"steps": steps}


def give_up_names(written: Iterable[dict[str, Any]]) -> None:
    """Call each session `unnamed` that ended without having created a znode below `/brokers/ids`, as the recordings do."""
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
    """Goes through a journal step by step; keeps what a step needs of the steps before it."""

    def __init__(self, release: str) -> None:
        self.release, self.fold = release, Fold()
        self.epochs: dict[int, int] = {}
        self.sent: dict[Any, dict[str, Any]] = {}
        self.held: dict[Any, dict[str, Any]] = {}  # by the record that says that its answer is held back

    def step(self, records: Sequence[Record]) -> Step:
        self.fold.all(records)
        plain = [record.plain() for record in records if record.kind in READ]
        return {
            "writes": [write for record in plain for write in writes(record)],
            "transitions": list(self._transitions(plain)),
            "requests": list(self._requests(plain)),
            "znodes": self._znodes(),
            **answered(plain),
        }

    def _znodes(self) -> dict[str, Any]:
        return {
            path: {"data": data(path, text), "version": version, "ephemeral_owner": owner}
            for path, (text, version, owner) in self.fold.state["znodes"].items()
        }

    def _transitions(self, records: Iterable[Record]) -> Iterator[dict[str, Any]]:
        """Every move that a controller carried out, or refused, under the epoch that it held."""
        for record in records:
            f, node = record.fields, record.id.node
            if record.kind == "learn" and (f["context"], f["field"]) == ("controller", "controller_epoch"):
                self.epochs[node] = f["put"]
            elif f.get("rule") == NOBODY_LEADS and since(self.release) < NOBODY_LEADS_LOGGED_SINCE:
                continue
            elif record.kind in ("change", "refuse"):
                move = {"by": node, "epoch": self.epochs[node], "machine": f["machine"], "subject": f["subject"]}
                move |= {"from": short(f["source"]), "to": short(f["target"])}
                failed = {"failed": True} if record.kind == "refuse" else {}
                yield (move if since(self.release) >= SOURCES_LOGGED_SINCE else as_logged_by_0_8_0(move, failed)) | failed

    def _requests(self, records: Iterable[Record]) -> Iterator[dict[str, Any]]:
        """Every request in the order in which its receiver was done with it."""
        records = list(records)
        late = {record.cause: record.id for record in records if record.kind == "hold"}
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
            elif record.kind == "give":
                yield self.held.pop(record.cause)


def answered(records: Iterable[Record]) -> dict[str, Any]:
    """Return the answer to an admin client's request to move partitions, with the protocol's numbers of errors."""
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

READ = frozenset({"respond", "open", "close", "write", "change", "refuse", "learn", "send", "receive", "hold", "give"})


def writes(record: Record) -> Iterator[dict[str, Any]]:
    """The writes of one record that happened, and the beginning or end of a session."""
    f, by = record.fields, TOOL if record.id.broker is None else record.id.broker
    if record.kind == "open":
        yield {"by": by, "op": "open"}
    elif record.kind == "close":
        yield {"by": f["broker"], "op": "close", "deleted": f["deleted"]}
    elif record.kind == "write" and f["error"] is None:
        for kind, path, text, version, ephemeral in f["ops"]:
            yield from _write(by, f["fence"], kind, path, text, version, ephemeral)
    elif record.kind == "write" and "codes" in f:
        yield {"by": by, "op": "rejected", "codes": f["codes"]}
    elif record.kind == "change" and f["write"]:
        v, tp = f["value"], TopicPartition.parse(f["subject"].partition("@")[0])
        value = LeaderAndIsr.of_plain(v)
        yield from _write(by, f["fence"], f["write"], state_path(tp), encode_state(value).decode(), value.zk_version, False)


def _write(by: int | str, fence: int, kind: str, path: str, text: str, version: int | None, ephemeral: bool) -> Iterator[Any]:
    if kind == "check":
        return
    extra: dict[str, Any] = {} if kind == "delete" else {"data": data(path, text)}
    extra |= {"ephemeral": ephemeral} if kind == "create" else {"version": version} if kind == "set" else {}
    # ZooKeeper's transaction log has the version that a checked znode would get next.
    extra |= {"checked": {CONTROLLER_EPOCH: fence + 1}} if fence != -1 else {}
    yield {"by": by, "op": kind, "path": path, **extra}


def request(batch: dict[str, Any], api: str, to: int, release: str) -> dict[str, Any]:
    """One request of a batch, with the fields that the release's request log has."""
    head = {"api": api, "controller_epoch": batch["controller_epoch"]}
    if api == "UpdateMetadata":
        entries = _entries(batch["update_metadata"]["partitions"], release)
        return head | {"partitions": entries, "live_brokers": sorted(batch["live_brokers"])}
    if api == "StopReplica":
        return head | _stop(batch["stop_replica"], to, release)
    told = batch["leader_and_isr"]
    values = [told["values"][i] for i in told["to"][str(to)]]
    entries = _entries({v["partition"]: {k: x for k, x in v.items() if k != "partition"} for v in values}, release)
    live = told.get("live_leaders", sorted({v["leader"] for v in values} & set(batch["live_brokers"])))
    kind = {"type": told.get("type", 0)} if since(release) >= since(TYPE_SINCE) else {}
    return head | {"partitions": entries, "live_leaders": live} | kind


def _entries(partitions: dict[str, dict[str, Any]], release: str) -> dict[str, Any]:
    unknown = {name for name, first in FIELDS_SINCE.items() if since(release) < since(first)}
    return {tp: {name: value for name, value in entry.items() if name not in unknown} for tp, entry in partitions.items()}


def _stop(batch: dict[str, Any], to: int, release: str) -> dict[str, Any]:
    told = batch["to"][str(to)]
    if since(release) >= since(DELETE_PER_PARTITION_SINCE):
        return {"partitions": dict(told)}
    delete = batch.get("delete", any(entry["delete"] for entry in told.values()))
    return {"partitions": {tp: {} for tp in told}, "delete": delete}
