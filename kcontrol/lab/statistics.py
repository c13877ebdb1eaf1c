"""Kafka's own numbers about a controller and its brokers, counted from a journal; times are those of the run, in ms.

Counts of partitions and topics are as they were when the controller's last event ended, for that is when Kafka refreshes them.
Source: KafkaController.scala (gauges, ControllerStats), ControllerEventManager.scala and ControllerState.scala (2.8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from kcontrol.controller.handlers import DESIGNS
from kcontrol.errors import UserError
from kcontrol.events import ControllerState as S
from kcontrol.generations import LISTENERS, rules
from kcontrol.lab import replication_statistics, tables
from kcontrol.releases import is_since
from kcontrol.runtime.event_queue import QUEUE_TIME_TIMEOUT_MS
from kcontrol.runtime.fold import EMPTY_NODE, Fold
from kcontrol.runtime.journal import Record, RecordId
from kcontrol.views import prometheus

Memory = Mapping[str, Any]  # what a broker's controller module knows, as the fold has it


class State(NamedTuple):
    """What the gauge ControllerState shows for a state, and its timer, None where Kafka has none."""

    value: int
    timer: str | None


# fmt: off
STATES = {
    S.IDLE:                                 State(0,  None),
    S.CONTROLLER_CHANGE:                    State(1,  "ControllerChangeRateAndTimeMs"),
    S.BROKER_CHANGE:                        State(2,  "LeaderElectionRateAndTimeMs"),  # its name from before there were states
    S.TOPIC_CHANGE:                         State(3,  "TopicChangeRateAndTimeMs"),
    S.TOPIC_DELETION:                       State(4,  "TopicDeletionRateAndTimeMs"),
    S.ALTER_PARTITION_REASSIGNMENT:         State(5,  "PartitionReassignmentRateAndTimeMs"),
    S.AUTO_LEADER_BALANCE:                  State(6,  "AutoLeaderBalanceRateAndTimeMs"),
    S.MANUAL_LEADER_BALANCE:                State(7,  "ManualLeaderBalanceRateAndTimeMs"),
    S.CONTROLLED_SHUTDOWN:                  State(8,  "ControlledShutdownRateAndTimeMs"),
    S.ISR_CHANGE:                           State(9,  "IsrChangeRateAndTimeMs"),
    S.LEADER_AND_ISR_RESPONSE_RECEIVED:     State(10, "LeaderAndIsrResponseReceivedRateAndTimeMs"),
    S.LOG_DIR_CHANGE:                       State(11, "LogDirChangeRateAndTimeMs"),
    S.UNCLEAN_LEADER_ELECTION_ENABLE:       State(13, "UncleanLeaderElectionEnableRateAndTimeMs"),
    S.TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE: State(14, "TopicUncleanLeaderElectionEnableRateAndTimeMs"),
    S.LIST_PARTITION_REASSIGNMENT:          State(15, "ListPartitionReassignmentRateAndTimeMs"),
    S.UPDATE_METADATA_RESPONSE_RECEIVED:    State(16, None),
}
# fmt: on
STATE_OF = {event.__name__: row.state for handlers in DESIGNS.values() for event, row in handlers.items()}


# ---------------------------------------------------------------- the counts


def _offline(m: Memory) -> int:
    started = m.get("topics_with_deletion_started", ())
    states = m.get("partition_states", {})
    return sum(state == "OfflinePartition" and tp.rpartition("-")[0] not in started for tp, state in states.items())


def _without_a_live_leader(m: Memory) -> int:
    live = set(map(int, m.get("live_broker_epochs", {})))
    return sum(value["leader"] not in live for value in m.get("leadership", {}).values())


def _imbalanced(m: Memory) -> int:
    """Partitions that another replica leads than the first, of topics that stay; see `ControllerContext.is_imbalanced`."""
    assignments, going = m.get("assignments", {}), _going(m)
    return sum(
        preferred in value["isr"] if preferred in a["adding"] else value["leader"] != preferred
        for tp, value in m.get("leadership", {}).items()
        if tp in assignments and tp.rpartition("-")[0] not in going
        for a in (assignments[tp],)
        for preferred in a["replicas"][:1]
    )


def _going(m: Memory) -> frozenset[str]:
    return frozenset(m.get("topics_to_be_deleted", ()))


def _replicas_going(m: Memory, counts: Callable[[str], bool]) -> int:
    """Replicas of the topics that are queued for deletion, in states that count."""
    states, going = m.get("replica_states", {}), _going(m)
    named = (f"{tp}@{b}" for tp, a in m.get("assignments", {}).items() if tp.rpartition("-")[0] in going for b in a["replicas"])
    return sum(counts(states.get(replica, "NonExistentReplica")) for replica in named)


class Gauge(NamedTuple):
    """One number of an active controller: Kafka's name of the metric, since when, and the field of KafkaController behind it."""

    name: str
    since: str
    field: str
    count: Callable[[Memory], int]


# fmt: off
GAUGES = (
    Gauge("OfflinePartitionsCount",          "0.8.0", "offlinePartitionCount",           _offline),
    Gauge("PreferredReplicaImbalanceCount",  "0.8.0", "preferredReplicaImbalanceCount",  _imbalanced),
    Gauge("GlobalTopicCount",                "1.0",   "globalTopicCount",                lambda m: len(m.get("all_topics", ()))),
    Gauge("GlobalPartitionCount",            "1.0",   "globalPartitionCount",            lambda m: len(m.get("leadership", ()))),
    Gauge("TopicsToDeleteCount",             "2.4",   "topicsToDeleteCount",             lambda m: len(_going(m))),
    Gauge("ReplicasToDeleteCount",           "2.4",   "replicasToDeleteCount",
          lambda m: _replicas_going(m, lambda state: state != "ReplicaDeletionSuccessful")),
    Gauge("TopicsIneligibleToDeleteCount",   "2.4",   "ineligibleTopicsToDeleteCount",
          lambda m: len(m.get("topics_ineligible_for_deletion", ()))),
    Gauge("ReplicasIneligibleToDeleteCount", "2.4",   "ineligibleReplicasToDeleteCount",
          lambda m: _replicas_going(m, lambda state: state == "ReplicaDeletionIneligible")),
)
# fmt: on

# ---------------------------------------------------------------- one broker's numbers


class Statistic(NamedTuple):
    """One of Kafka's metrics at one broker.

    `kind` is "gauge" (`values` has one), "meter" (`values` are the moments, in ms since the broker's start) or "times" (in ms).
    `type` and `name` are those of the MBean; a `type` of "" is a field that Kafka shows nowhere.
    """

    broker: int
    type: str
    name: str
    kind: str
    values: tuple[int, ...]
    age_ms: int = 0
    domain: str = "controller"

    @property
    def mbean(self) -> str:
        """The name by which JMX knows it; "" for a mere field."""
        return f"kafka.{self.domain}:type={self.type},name={self.name}" if self.type else ""


def statistics(records: Sequence[Record]) -> list[Statistic]:
    """Every metric of every broker that runs after these records, by broker; none that the release does not have yet.

    Raises UserError for a recording of real brokers, which says nothing of what they counted.
    """
    if records[0].fields.get("world") == "recorded":
        raise UserError("A recording says what brokers wrote and not what they counted: ask a run of your own for statistics.")
    release, now_ms = records[0].fields["release"], records[-1].at_ms
    fold, brokers, told = Fold(), dict[int, _Broker](), replication_statistics.Told()
    for record in records:
        fold.add(record)
        told.note(record)
        if record.kind == "start":
            brokers[record.fields["broker"]] = _Broker(record.at_ms, rules(release).design)
        elif record.kind == "stop":
            del brokers[record.fields["broker"]]
        elif (broker := brokers.get(record.id.node)) is not None:
            broker.note(record, fold.state["nodes"][str(record.id.node)]["controller"])
    found: list[Statistic] = []
    for n, broker in sorted(brokers.items()):
        found += broker.numbers(n, fold.state["nodes"].get(str(n), EMPTY_NODE), release, now_ms)
        for name, count in replication_statistics.counts(fold.state, told, n, records[0].fields):
            found.append(Statistic(n, "ReplicaManager", name, "gauge", (count,), now_ms - broker.since_ms, "server"))
    return found


class _Broker:
    """What one process of a broker has counted since its start."""

    def __init__(self, since_ms: int, design: str) -> None:
        self.since_ms, self.idle_since_ms, self.design = since_ms, since_ms, design
        self.gauges: dict[str, int] = {}
        self.times: dict[S, list[int]] = {}
        self.unclean: list[int] = []
        self.waited: list[int] = []
        self._queued: dict[RecordId, int] = {}
        self._begun: dict[str, tuple[int, str]] = {}

    def note(self, r: Record, memory: Memory) -> None:
        if r.kind == "change" and r.fields.get("rule") == "unclean":
            self.unclean.append(r.at_ms - self.since_ms)
        elif r.kind == "enqueue" and r.fields["thread"] == "controller":
            self._queued[r.id] = r.at_ms
        elif r.kind == "preempt" and r.cause is not None:
            self._queued.pop(r.cause, None)
        elif r.kind == "begin":
            self._begin(r)
        elif r.kind == "end":
            self._end(r, memory)

    def _begin(self, r: Record) -> None:
        self._begun[r.fields["thread"]] = r.at_ms, r.fields["event"]
        if r.cause is not None and (queued_ms := self._queued.pop(r.cause, None)) is not None:
            if queued_ms - self.idle_since_ms >= QUEUE_TIME_TIMEOUT_MS:
                self.waited.clear()
            self.waited.append(r.at_ms - queued_ms)

    def _end(self, r: Record, memory: Memory) -> None:
        begun_ms, event = self._begun.pop(r.fields["thread"])
        state = STATE_OF.get(event)
        if state is None:
            return
        self.idle_since_ms = r.at_ms
        self.times.setdefault(state, []).append(r.at_ms - begun_ms)
        self.gauges = _counts(r.id.node, memory, self.design)

    def numbers(self, n: int, node: Mapping[str, Any], release: str, now_ms: int) -> Iterator[Statistic]:
        memory, age_ms = node["controller"], now_ms - self.since_ms

        def gauge(kind: str, name: str, value: int) -> Statistic:
            return Statistic(n, kind, name, "gauge", (value,), age_ms)

        yield gauge("", "activeControllerId", memory.get("active_controller_id", -1))
        yield gauge("KafkaController", "ActiveControllerCount", int(_rules(n, memory, self.design)))
        gauges = (
            self.gauges if is_since("1.0", release) else _counts(n, memory, self.design)
        )  # once they were counted when somebody looked
        for row in GAUGES:
            if is_since(row.since, release):
                counts_leaders = row.name == "OfflinePartitionsCount" and not is_since("1.1", release)
                yield gauge("KafkaController", row.name, gauges.get(BEFORE_STATES if counts_leaders else row.name, 0))
        if is_since("0.11.0", release):
            busy = node["handling"].get("controller")
            state = STATE_OF.get(busy["event"], S.IDLE) if busy else S.IDLE
            yield gauge("KafkaController", "ControllerState", STATES[state].value)
        yield Statistic(n, "ControllerStats", "UncleanLeaderElectionsPerSec", "meter", tuple(self.unclean), age_ms)
        for state, about in STATES.items():
            if about.timer and (state is S.BROKER_CHANGE or is_since("0.11.0", release)):
                yield Statistic(n, "ControllerStats", about.timer, "times", tuple(self.times.get(state, ())), age_ms)
        if is_since("2.0", release):
            yield gauge("ControllerEventManager", "EventQueueSize", len(node["queues"].get("controller", ())))
            yield Statistic(n, "ControllerEventManager", "EventQueueTimeMs", "times", tuple(self.waited), age_ms)


BEFORE_STATES = "OfflinePartitionsCount of 1.0"
"""Until 1.0 those partitions counted whose leader is not registered. Known are 0.8.2, 1.0 and 2.8: its end is taken to be 1.1."""


def _counts(n: int, memory: Memory, design: str) -> dict[str, int]:
    """The counts as this broker would refresh them now; nothing where it is not controller."""
    if not _rules(n, memory, design):
        return {}
    return {gauge.name: gauge.count(memory) for gauge in GAUGES} | {BEFORE_STATES: _without_a_live_leader(memory)}


def _rules(n: int, memory: Memory, design: str) -> bool:
    """Whether Kafka takes this broker for the controller: once whoever had channels to brokers, later whoever's id it remembers.

    Source: KafkaController.isActive (0.8.1, 2.8).
    """
    return bool(memory.get("has_channels", False) if design == LISTENERS else memory.get("active_controller_id", -1) == n)


# ---------------------------------------------------------------- as a table, and for Prometheus

QUANTILES = (0.5, 0.99)
COLUMNS = {"metric": "string", "attribute": "string", "field": "string", "mbean": "string"}


def table(found: Sequence[Statistic]) -> pd.DataFrame:
    """One row per metric and attribute, one column per broker that runs; timers that have not run yet are left out.

    Attributes bear JMX's names: Value, Count, MeanRate (per second), Mean, Max, 50thPercentile and 99thPercentile (ms).
    Counts are whole numbers, the others may be fractions.
    """
    ran = {s.name for s in found if s.values}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for s in found:
        for attribute, value in _attributes(s).items() if s.name in ran or s.kind == "meter" else ():
            row = rows.setdefault((s.name, attribute), {"metric": s.name, "attribute": attribute, "mbean": s.mbean})
            row |= {"field": FIELDS.get(s.name, ""), str(s.broker): value}
    brokers = sorted({s.broker for s in found})
    types = COLUMNS | {str(n): "object" for n in brokers}
    missing = dict.fromkeys(map(str, brokers), pd.NA)
    whole = tables.table((missing | row for row in rows.values()), types).set_index(["metric", "attribute"])
    return whole.rename(columns={str(n): n for n in brokers})


FIELDS = {gauge.name: gauge.field for gauge in GAUGES} | {"activeControllerId": "activeControllerId"}


def _attributes(s: Statistic) -> dict[str, float | None]:
    if s.kind == "gauge":
        return {"Value": s.values[0]}
    if s.kind == "meter":
        return {"Count": len(s.values), "MeanRate": len(s.values) * 1_000 / s.age_ms if s.age_ms else 0}
    if not s.values:
        return {"Count": 0}
    mean = sum(s.values) / len(s.values)
    named = {"50thPercentile": _quantile(s.values, 0.5), "99thPercentile": _quantile(s.values, 0.99)}
    return {"Count": len(s.values), "Mean": mean, "Max": max(s.values), **named}


def _quantile(values: Sequence[int], share: float) -> float:
    """Between the two nearest values where it falls between them, as Kafka's metrics library has it."""
    ordered, position = sorted(values), share * (len(values) + 1)
    if position < 1 or position >= len(values):
        return ordered[0 if position < 1 else -1]
    lower = ordered[int(position) - 1]
    return lower + (position - int(position)) * (ordered[int(position)] - lower)


def exposition(found: Sequence[Statistic], run: str) -> str:
    """The same in Prometheus's text format, with the labels `broker` and `run`; timers are summaries, meters counters.

    A family is called after the MBean: `kafka_controller_KafkaController_ActiveControllerCount`. Fields without one are left out.
    """
    families: dict[str, prometheus.Family] = {}
    for s in found:
        if s.mbean:
            name = f"kafka_{s.domain}_{s.type}_{s.name}" + ("_total" if s.kind == "meter" else "")
            kind = {"gauge": "gauge", "meter": "counter", "times": "summary"}[s.kind]
            family = families.setdefault(name, prometheus.Family(name, kind, s.mbean, []))
            family.samples.extend(_samples(s, {"broker": str(s.broker), "run": run}))
    return prometheus.text(families.values())


def _samples(s: Statistic, labels: Mapping[str, str]) -> Iterator[prometheus.Sample]:
    if s.kind != "times":
        yield prometheus.Sample("", labels, s.values[0] if s.kind == "gauge" else len(s.values))
        return
    for share in QUANTILES if s.values else ():
        yield prometheus.Sample("", {**labels, "quantile": str(share)}, _quantile(s.values, share))
    yield prometheus.Sample("_sum", labels, sum(s.values))
    yield prometheus.Sample("_count", labels, len(s.values))
