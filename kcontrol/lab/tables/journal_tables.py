"""Makes tables of a run as pandas frames, from the records of its journal and the state of the cluster after the last record.

The type of a column does not depend on the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kcontrol.core.znodes import broker_path
from kcontrol.group.offsets_topic_records import decode
from kcontrol.journal.journal import Record
from kcontrol.lab import record_lookup
from kcontrol.lab.support.late import frames, pd
from kcontrol.recordings.door import bytes_of
from kcontrol.views import clock, folded_state, group_state, kafka_words, watch_counts

if TYPE_CHECKING:
    from kcontrol.lab.run import Run

State = dict[str, Any]

# A column of this type is a date in UTC without a time zone on a wall clock, and `..._ms` in virtual time; recordings have
# none.
TIME = "datetime64[ms]"
# fmt: off
PARTITIONS = {"leader": "Int64", "isr": "object", "replicas": "object", "leader_epoch": "Int64", "controller_epoch": "Int64",
              "zk_version": "Int64", "state": "string"}
# `controller`: the znode `/controller` names the broker. `believes_so`: the broker itself believes to be the controller.
# `handling`: events whose handlers have begun and not ended. `queue`: events that wait for a handler.
BROKERS = {"alive": "bool", "frozen": "bool", "registered": "bool", "controller": "bool", "believes_so": "bool",
           "controller_epoch": "Int64", "broker_epoch": "Int64", "leads": "object", "handling": "object", "queue": "object"}
ZNODES = {"text": "string", "version": "Int64", "owner": "Int64"}
JOURNAL = {"at": TIME, "node": "Int64", "incarnation": "int64", "seq": "int64", "kind": "string", "cause": "string",
           "what": "string"}
WATCHES = {"broker": "int64", "path": "string", "kind": "string"}
ALIVE = "alive"
DIFFERENCES = {"where": "string", "what": "string", "before": "object", "after": "object"}
# fmt: on


def timed(types: Mapping[str, str], records: Sequence[Record]) -> dict[str, str]:
    """Return the column types `types` after adapting each column of times, such as `at`, to the run's clock.

    With a wall clock `at` stays and has dates; virtual time gives an integer column `at_ms`; a recording gives no column.
    """
    measured = clock.of_run(records)
    if measured == "wall":
        return dict(types)
    kept = {name: dtype for name, dtype in types.items() if dtype != TIME or measured == "virtual"}
    return {f"{name}_ms" if dtype == TIME else name: "Int64" if dtype == TIME else dtype for name, dtype in kept.items()}


def table(
    rows: Iterable[Mapping[str, Any]], types: Mapping[str, str], index: str | None = None, index_type: str = "object"
) -> pd.DataFrame:
    """Return `rows` as a table with exactly the columns and types of `types`, even if there are no rows.

    `index` is the key whose values become the table's index; None gives the numbers from 0.
    """
    rows = list(rows)
    # A column of type TIME, such as `at`, has its values under a key with the suffix `_ms`, such as `at_ms`.
    keys = {name: f"{name}_ms" if dtype == TIME else name for name, dtype in types.items()}
    columns = {name: pd.Series([row.get(key) for row in rows], dtype="object") for name, key in keys.items()}
    frame = frames.Frame({name: typed(values, types[name]) for name, values in columns.items()}, columns=list(types))
    if index:
        frame.index = pd.Index([row[index] for row in rows], name=index, dtype=index_type)
    return frame


def typed(values: Any, dtype: str) -> Any:
    """Return `values`, a pandas Series or Index, as type `dtype`; for "datetime64[ms]" `values` are ms since 1970."""
    return pd.to_datetime(values, unit="ms").astype(dtype) if dtype == TIME else values.astype(dtype)


# ---------------------------------------------------------------- partitions


def partitions(state: State) -> pd.DataFrame:
    """Return one row per partition, as stored in ZooKeeper, with its state in the active controller's memory.

    `leader` is -1 for a partition without a leader, missing for a partition without a state znode.
    """
    states = states_at_the_controller(state, "partition")
    return table((_partition_row(p, states) for p in folded_state.partitions(state)), PARTITIONS, "partition")


def states_at_the_controller(state: State, machine: str) -> Mapping[str, str]:
    """Return the state of each partition ("t-0") or replica ("t-0@2") in the active controller's memory, by its name.

    `machine` is "partition" or "replica"; the mapping is empty if no active controller runs.
    """
    found: Mapping[str, str] = folded_state.controller_memory(state).get(f"{machine}_states", {})
    return found


def _partition_row(p: folded_state.Partition, states: Mapping[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {"partition": p.name, "replicas": list(p.replicas), "isr": list(p.isr), "state": states.get(p.name)}
    if p.leader is None:
        return row
    numbers = ("leader", "leader_epoch", "controller_epoch", "zk_version")
    return row | {name: getattr(p, name) for name in numbers}


# ---------------------------------------------------------------- brokers and znodes


def brokers(records: Sequence[Record], state: State) -> pd.DataFrame:
    """Return one row per broker, indexed by id: the brokers in the settings of the run and those that were started later."""
    known = {*records[0].fields["brokers"], *(r.fields["broker"] for r in records if r.kind == "start")}
    frozen = _frozen(records)
    return table((_broker_row(state, n, n in frozen) for n in sorted(known)), BROKERS, "broker", "int64")


def _frozen(records: Sequence[Record]) -> set[int]:
    frozen: set[int] = set()
    for record in records:
        if record.kind == "freeze":
            frozen.add(record.fields["broker"])
        elif record.kind in ("thaw", "stop"):
            frozen.discard(record.fields["broker"])
    return frozen


def _broker_row(state: State, n: int, frozen: bool) -> dict[str, Any]:
    node, ruler = state["nodes"].get(str(n)), folded_state.controller(state)
    row = {
        "broker": n,
        "alive": node is not None,
        "frozen": frozen,
        "registered": broker_path(n) in state["znodes"],
        "controller": ruler is not None and ruler[0] == n,
        "leads": [p.name for p in folded_state.partitions(state) if p.leader == n],
    }
    if node is None:
        return row | {"believes_so": False, "handling": [], "queue": []}
    rules = node["controller"].get("active_controller_id") == n
    return row | {
        "believes_so": rules,
        "controller_epoch": node["controller" if rules else "broker"].get("controller_epoch"),
        "broker_epoch": node["broker"].get("broker_epoch"),
        "handling": [event["event"] for event in node["handling"].values()],
        "queue": [event["event"] for waiting in node["queues"].values() for event in waiting],
    }


def znodes(run: Run) -> pd.DataFrame:
    """ZooKeeper's tree: each znode by its path, with data as text, version and owner.

    `owner` is the broker whose session owns an ephemeral znode; missing for a persistent znode.
    """
    found = sorted(run.state["znodes"].items())
    rows = ({"path": path, "text": text, "version": version, "owner": owner} for path, (text, version, owner) in found)
    return table(rows, ZNODES, "path")


def watches(run: Run) -> pd.DataFrame:
    """Each watch of a running broker at ZooKeeper: on the data of a znode, or on its children."""
    return table((watch._asdict() for watch in watch_counts.open_watches(run.records)), WATCHES)


# ---------------------------------------------------------------- the journal


def journal(records: Sequence[Record], say: Callable[[Record], str], kind: str | None = None) -> pd.DataFrame:
    """Return one row per journal record; the column `what` is the sentence that `say` returns for the record.

    With a `kind`, such as "write", return only its records, with a column per field in place of `what`.
    """
    # The column `node` is missing for records of clients, of ZooKeeper and of the simulation itself.
    if kind is None:
        rows = (_journal_row(record) | {"what": say(record.to_json())} for record in records)
        return table(rows, timed(JOURNAL, records), "id")
    chosen = [record.to_json() for record in records if record.kind == kind]
    head = {name: dtype for name, dtype in timed(JOURNAL, records).items() if name not in ("what", "kind")}
    names = dict.fromkeys(name for record in chosen for name in record.fields)
    fields = {name: [_readable(record.fields.get(name)) for record in chosen] for name in names}
    narrow = table(map(_journal_row, chosen), head, "id")
    # A field with the name of another column gets the kind as a prefix: `start_incarnation`.
    columns = {f"{kind}_{name}" if name in head else name: values for name, values in fields.items()}
    return narrow.assign(**{name: pd.Series(values, narrow.index, _dtype_of(values)) for name, values in columns.items()})


def _readable(value: Any) -> Any:
    """Return the value of a field of a journal record, with the bytes of the consumer protocol decoded.

    An assignment becomes a list of partitions, and a member's subscription a list of topics.
    """
    body = value if isinstance(value, dict) else {}
    # Bytes of a protocol other than "consumer" stay as they are. A SyncGroup request has one list of partitions per member id.
    with suppress(ValueError):
        if body.get("assignment"):
            return body | {"assignment": _partitions(body["assignment"])}
        if body.get("members") and "generation" in body:
            return body | {"members": {id: decode("subscription", bytes_of(data))[1]["topics"] for id, data in body["members"]}}
    return value


def _partitions(assignment: str | dict[str, str]) -> list[str] | dict[str, Any]:
    if isinstance(assignment, dict):
        return {member: _partitions(text) for member, text in assignment.items()}
    decode("assignment", data := bytes_of(assignment))  # raises ValueError for bytes of another protocol
    return group_state.partitions(data.hex())


def logged(records: Sequence[Record], kind: str | None = None) -> pd.Series[str]:
    """Return, for each journal record, the log lines that Kafka writes at this record, as one text ("" for none).

    A `kind`, such as "write", limits the result to its records.
    """
    lines = zip(records, kafka_words.in_kafkas_words(records), strict=True)
    return pd.Series(["\n".join(map(str, said)) for record, said in lines if kind in (None, record.kind)], dtype="string")


def _dtype_of(values: Sequence[Any]) -> str:
    kinds = {type(value) for value in values if value is not None}
    return {int: "Int64", bool: "boolean", str: "string"}.get(kinds.pop(), "object") if len(kinds) == 1 else "object"


def _journal_row(record: Record) -> dict[str, Any]:
    _, incarnation, seq = record.id
    return {
        "id": str(record.id), "at_ms": record.at_ms, "node": record.id.broker, "incarnation": incarnation, "seq": seq,
        "kind": record.kind, "cause": str(record.cause) if record.cause else None,
    }  # fmt: skip


# ---------------------------------------------------------------- what has changed


def diff(run: Run, before: object, after: object = -1) -> pd.DataFrame:
    """The differences of the states after two records: znodes, running brokers, their memory.

    A record is an id such as "2.1.58", or a position in the journal. None stands for a znode or a field that does not exist.
    Raises UserError for an unknown record.
    """
    return _differences(*(run._past.at(record_lookup.position(run.records, to)) for to in (before, after)))


def _differences(before: State, after: State) -> pd.DataFrame:
    # The memory is compared for brokers that run in both states; any other broker has one row, `alive`.
    both = before["nodes"].keys() & after["nodes"].keys()
    one, other = dict(_facts(before, both)), dict(_facts(after, both))
    keys = sorted(key for key in {*one, *other} if one.get(key) != other.get(key))
    nothing = {key: False if key[1] == ALIVE else None for key in keys}
    rows = ({"where": k[0], "what": k[1], "before": one.get(k, nothing[k]), "after": other.get(k, nothing[k])} for k in keys)
    return table(rows, DIFFERENCES)


def _facts(state: State, compared: Iterable[str]) -> Iterator[tuple[tuple[str, str], Any]]:
    for path, (text, version, _) in state["znodes"].items():
        yield ("ZooKeeper", path), f"{text} (version {version})".lstrip()
    for n in state["nodes"]:
        yield (f"broker {n}", ALIVE), True
    for n in compared:
        for module in ("controller", "broker"):
            for field, value in state["nodes"][n][module].items():
                parts = value.items() if isinstance(value, dict) else [("", value)]
                for key, part in parts:
                    if part not in ([], {}):
                        yield (f"broker {n}", f"{module}.{field}[{key}]" if key else f"{module}.{field}"), part
