"""Tables of the partitions of `__consumer_offsets`: the coordinators that own or load them, and each load and unload.

A coordinator has two sets of partition numbers: `loading` has the partitions whose log is being read, `owned` those whose
groups it coordinates.

Source: GroupMetadataManager.scala: ownedPartitions, loadingPartitions (0.9, 2.8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kcontrol.core.model import TopicPartition
from kcontrol.group import events as e
from kcontrol.group import membership
from kcontrol.group.context import GroupConfig, GroupContext
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC, partition_for
from kcontrol.group.error_codes import ERRORS
from kcontrol.group.group_rules import group_rules
from kcontrol.journal.journal import Record, RecordId
from kcontrol.lab.run import Run
from kcontrol.lab.support.late import frames, pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views import folded_state

State = Mapping[str, Any]
OWN_GROUP = "the group decides"
COORDINATORS = {"broker": "int64", "leads": "bool", "loading": "bool", "owned": "bool", "coordinator_epoch": "Int64",
                "groups": "object", "JoinGroup": "string", "SyncGroup": "string", "Heartbeat": "string"}  # fmt: skip
LOADS = {"broker": "int64", "event": "string", "begin": journal_tables.TIME, "end": journal_tables.TIME, "partition": "string",
         "coordinator_epoch": "Int64", "batches": "Int64", "groups": "object", "outcome": "string"}  # fmt: skip
ELECTED, RESIGNED = e.PartitionElected.__name__, e.PartitionResigned.__name__


# ---------------------------------------------------------------- the sets


def coordinators(run: Run) -> pd.DataFrame:
    """The partitions of `__consumer_offsets` that each running broker leads, loads and owns.

    `owned`: the broker coordinates the partition's groups; `loading`: the broker reads the log. The column `JoinGroup`, for
    example, has the error of a response to JoinGroup.
    """
    # The sets `loading` and `owned` and the release decide the response to a request before any group is looked at. `groups`
    # are those in the coordinator's cache.
    brokers = [(n, node) for n, node in folded_state.nodes(run.state) if "group" in node]
    known = {tp for _, node in brokers for tp in node["broker"].get("metadata", {}) if tp.startswith(f"{OFFSETS_TOPIC}-")}
    rows = (
        _row(tp, n, node, run._played) | _groups(tp, node, len(known)) for tp in sorted(known, key=_number) for n, node in brokers
    )
    return frames.Wide(journal_tables.table(rows, COORDINATORS, "partition"))


def _number(tp: str) -> int:
    return TopicPartition.parse(tp).partition


def _row(tp: str, broker: int, node: Mapping[str, Any], release: str) -> dict[str, Any]:
    held, number, hosted = node["group"], _number(tp), node["broker"].get("hosted", {}).get(tp)
    loading, owned = number in held.get("loading", ()), number in held.get("owned", ())
    row = {"partition": tp, "broker": broker, "loading": loading, "owned": owned}
    row["leads"] = hosted is not None and hosted["leadership"]["leader"] == broker
    row["coordinator_epoch"] = held.get("coordinator_epochs", {}).get(str(number))
    return row | responses(release, loading=loading, owned=owned)


def _groups(tp: str, node: Mapping[str, Any], partitions: int) -> dict[str, list[str]]:
    cached = node["group"].get("groups", {})
    return {"groups": sorted(group for group in cached if partition_for(group, partitions) == _number(tp))}


def responses(release: str, *, loading: bool, owned: bool) -> dict[str, str]:
    """Return the error with which a broker responds to each request, such as {"JoinGroup": "NOT_COORDINATOR (16)", ...}.

    `loading`: the broker reads the log of the group's partition; `owned`: it coordinates the group. OWN_GROUP stands for a
    response that depends on the group.
    """
    rules, config = group_rules(release), GroupConfig.of(release, partitions=1)
    ctx = GroupContext(rules, config, owned={0} if owned else set(), loading={0} if loading else set())
    found = {"JoinGroup": ctx.validate_group_status("any")}
    found["SyncGroup"] = membership.refused_here(ctx, e.SyncGroup("", "any", "", 0))
    found["Heartbeat"] = membership.refused_here(ctx, e.Heartbeat("", "any", "", 0))
    return {request: OWN_GROUP if error is None else f"{error} ({ERRORS[error]})" for request, error in found.items()}


# ---------------------------------------------------------------- loads and unloads


@dataclass
class _Run:
    """One load or unload of a partition of `__consumer_offsets`, as the journal records of the event's handler show it."""

    # The `begin` record of the handler. A load follows the election of this broker as leader, an unload the end of its
    # leadership.
    begun: Record
    # The event as JSON: PartitionElected for a load, PartitionResigned for an unload.
    event: Mapping[str, Any]
    # For each read of the log, the number of batches; None if the broker no longer led the partition.
    reads: list[int | None] = field(default_factory=list)
    # The groups that the load has read, or that the unload has removed.
    groups: list[str] = field(default_factory=list)
    # The number of parked requests that an unload has refused.
    refused: int = 0
    # The text of an error in the handler.
    problem: str | None = None
    # Whether a load has added the partition to `loading`; otherwise the handler ignores the event.
    loads: bool = False
    # Whether an unload has changed `owned`; otherwise the handler ignores the event.
    removes: bool = False
    # The time of the end in ms, None if the handler has not ended.
    ended: int | None = None

    @property
    def outcome(self) -> str:
        if self.ended is None:
            return "the handler has not ended"
        if self.event["event"] == RESIGNED:
            answered = f"; {self.refused} parked requests are refused" if self.refused else ""
            return f"the partition is given up{answered}" if self.removes else "ignored: the coordinator epoch is older"
        if not self.loads:
            return "ignored: the partition is owned or being loaded already, or the coordinator epoch is older"
        if self.problem is not None:
            return f"owned without the groups of the log: {self.problem}"
        return "cut off: the broker leads no longer" if self.reads[-1:] == [None] else "owned"


def loads(run: Run) -> pd.DataFrame:
    """Each load and unload of a partition of `__consumer_offsets`, with its groups and its outcome.

    `outcome` is, for example, "owned" or "ignored: the coordinator epoch is older"; `batches` is the number of batches that a
    load has read from the log.
    """
    records = run.records
    rows = [
        {
            "broker": load.begun.id.node,
            # The event follows the election of the broker as the partition's leader, or the end of this leadership.
            "event": load.event["event"],
            "begin_ms": load.begun.at_ms,
            "end_ms": load.ended,
            "partition": str(TopicPartition(OFFSETS_TOPIC, load.event["partition"])),
            "coordinator_epoch": load.event["coordinator_epoch"],
            "batches": sum(read or 0 for read in load.reads),
            "groups": load.groups,
            "outcome": load.outcome,
        }
        for load in _runs(records)
    ]
    return frames.Wide(journal_tables.table(rows, journal_tables.timed(LOADS, records)))


def _runs(records: Sequence[Record]) -> Iterator[_Run]:
    queued, runs = dict[RecordId, Mapping[str, Any]](), dict[RecordId, _Run]()
    for record in records:
        if record.kind == "enqueue":
            event = record.to_json().fields["event"]
            if event["event"] in (ELECTED, RESIGNED):
                queued[record.id] = event
        elif record.kind == "begin" and record.cause in queued:
            runs[record.id] = _Run(record, queued[record.cause])
        elif record.cause in runs:
            _follow(runs[record.cause], record.to_json())
    yield from runs.values()


def _follow(run: _Run, record: Record) -> None:
    """Add to `run`, a load or an unload of an offsets-topic partition, what one journal record of its handler shows.

    A `read_log` record, for example, appends its number of batches to `run.reads`.
    """
    fields = record.fields
    match record.kind:
        case "read_log":
            run.reads.append(fields["batches"])
        case "handler_error":
            run.problem = fields["message"]
        case "respond":
            run.refused += 1
        case "group":
            run.groups.append(fields["group_id"])
        case "update" if fields["field"] == "groups" and fields["put"]:
            run.groups += [name for name in fields["put"] if name not in run.groups]
        case "update" if fields["field"] == "loading" and fields["put"]:
            run.loads = True
        case "update" if fields["field"] == "owned":
            run.removes = True
        case "end":
            run.ended = record.at_ms
