"""Kafka's metrics of a run, those of the controller and those of the group coordinator, as a table and as text for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kcontrol.core.releases import is_since
from kcontrol.journal.journal import Record
from kcontrol.lab.run import Run
from kcontrol.lab.support.late import pd
from kcontrol.lab.support.output import Shown
from kcontrol.lab.tables import statistics
from kcontrol.views import folded_state

STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
COUNTED = {"OffsetsStored": "offset-commit-count", "AssignmentStored": "group-completed-rebalance-count"}
"""The metric that each write counts for: the records of a commit, and the SyncGroups of leaders."""


def metrics(run: Run) -> pd.DataFrame:
    """Kafka's own metrics of controller and coordinator, by broker.

    There is a row per metric and attribute, and a column per running broker. Timers are in ms, MeanRate is per second.
    Raises UserError for a recording of real brokers.
    """
    return statistics.table(_statistics(run))


def prometheus(run: Run) -> Shown:
    """Kafka's own metrics of controller and coordinator, as text that Prometheus reads.

    Raises UserError for a recording of real brokers.
    """
    return Shown(statistics.exposition(_statistics(run), run.name))


def _statistics(run: Run) -> list[statistics.Statistic]:
    return statistics.statistics(run.records) + _of_coordinators(run.records, run.state)


# ---------------------------------------------------------------- metrics of the group coordinator


def _of_coordinators(records: Sequence[Record], state: Mapping[str, Any]) -> list[statistics.Statistic]:
    """Broker by broker; [] in a run without consumers.

    Source: GroupMetadataManager.scala and GroupCoordinator.scala (0.9.0.1, 1.1.0, 2.4.0, 2.8.2)
    """
    release, counts = str(records[0].fields["release"]), _counts(records)
    coordinators = ((broker, node["group"]) for broker, node in folded_state.nodes(state) if "group" in node)
    return [found for broker, held in coordinators for found in _of_broker(broker, held, counts, release)]


def _of_broker(
    broker: int, held: Mapping[str, Any], counts: Counter[tuple[int, str]], release: str
) -> Iterator[statistics.Statistic]:
    domain = "coordinator.group" if is_since("0.11.0", release) else "coordinator"
    groups = held.get("groups", {}).values()
    stored = sum(len(offsets["committed"]) for offsets in held.get("offsets", {}).values())
    gauges = {"NumOffsets": stored, "NumGroups": len(groups)}
    if is_since("1.1.0", release):
        gauges |= {f"NumGroups{name}": sum(group["state"] == name for group in groups) for name in STATES}
    for name, number in gauges.items():
        yield statistics.Statistic(broker, "GroupMetadataManager", name, "gauge", (number,), domain=domain)
    if is_since("2.4.0", release):
        for name in COUNTED.values():
            yield statistics.Statistic(
                broker, "group-coordinator-metrics", name, "gauge", (counts[broker, name],), domain="server"
            )


def _counts(records: Sequence[Record]) -> Counter[tuple[int, str]]:
    """Return the numbers of committed offsets and completed rebalances since each broker's start, by broker and metric."""
    counts, commits = Counter[tuple[int, str]](), dict[Any, int]()
    for record in records:
        if record.kind == "stop":
            counts = Counter({key: number for key, number in counts.items() if key[0] != record.fields["broker"]})
        elif record.kind == "append":
            fields = record.to_json().fields
            written = (fields["completion_event"] or {}).get("event")
            # A rebalance counts when the coordinator begins to append the assignment that the group's leader has sent.
            if written == "AssignmentStored":
                counts[record.id.node, COUNTED[written]] += 1
            elif written == "OffsetsStored":
                commits[record.id] = len(fields["records"])
        elif record.kind == "enqueue" and record.cause in commits:
            commits[record.id] = commits[record.cause]
        # The offsets of a commit count when the coordinator handles the end of the write, even if the write has failed. A journal
        # of a recording has no such event.
        elif record.kind in ("begin", "offsets_append") and record.cause in commits:
            counts[record.id.node, COUNTED["OffsetsStored"]] += commits[record.cause]
    return counts
