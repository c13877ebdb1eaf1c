"""Computes Kafka's metrics of a controller and its brokers from a journal; times are in ms of the run's clock.

Source: KafkaController.scala (gauges, ControllerStats), ControllerEventManager.scala and ControllerState.scala (2.8).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kcontrol.controller.design import Design
from kcontrol.controller.handlers import design_of
from kcontrol.core.controller_rules import rules
from kcontrol.core.errors import UserError
from kcontrol.core.events import ControllerState as S
from kcontrol.core.releases import is_since
from kcontrol.driver.threads import QUEUE_TIME_TIMEOUT_MS
from kcontrol.journal.fold import EMPTY_NODE, Fold
from kcontrol.journal.journal import Record, RecordId
from kcontrol.lab.support.late import pd
from kcontrol.lab.tables import journal_tables, replication_statistics

Memory = Mapping[str, Any]  # a broker's controller context, as the fold has it


class State(NamedTuple):
    """A state of the controller: its number in the gauge ControllerState, and the name of the metric that times its events."""

    value: int
    # Such as "TopicChangeRateAndTimeMs"; None if Kafka has no such metric for the state.
    timer: str | None


# fmt: off
STATES = {
    S.IDLE:                                 State(0,  None),
    S.CONTROLLER_CHANGE:                    State(1,  "ControllerChangeRateAndTimeMs"),
    S.BROKER_CHANGE:                        State(2,  "LeaderElectionRateAndTimeMs"),  # the timer is older than the states
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
STATE_OF = {
    event.__name__: row.state for release in ("0.10.2", "1.0", "2.8") for event, row in design_of(rules(release)).handlers.items()
}


# ---------------------------------------------------------------- the counts


def _offline(m: Memory) -> int:
    started = m.get("topics_with_deletion_started", ())
    states = m.get("partition_states", {})
    return sum(state == "OfflinePartition" and tp.rpartition("-")[0] not in started for tp, state in states.items())


def _without_a_live_leader(m: Memory) -> int:
    live = set(map(int, m.get("live_broker_epochs", {})))
    return sum(value["leader"] not in live for value in m.get("leadership", {}).values())


def _imbalanced(m: Memory) -> int:
    """Count the partitions whose leader is not the first assigned replica; topics in deletion do not count.

    If a reassignment is adding the first replica, a partition counts if this replica is in the ISR, even if it leads.
    """
    assignments, going = m.get("assignments", {}), _being_deleted(m)
    return sum(
        # If a reassignment is adding the first replica, the partition counts if this replica is in the ISR, with any leader.
        preferred in value["isr"] if preferred in a["adding"] else value["leader"] != preferred
        for tp, value in m.get("leadership", {}).items()
        if tp in assignments and tp.rpartition("-")[0] not in going
        for a in (assignments[tp],)
        for preferred in a["replicas"][:1]
    )


def _being_deleted(m: Memory) -> frozenset[str]:
    return frozenset(m.get("topics_to_be_deleted", ()))


def _replicas_being_deleted(m: Memory, counts: Callable[[str], bool]) -> int:
    """A replica without a state in the memory has the state "NonExistentReplica"."""
    states, going = m.get("replica_states", {}), _being_deleted(m)
    named = (f"{tp}@{b}" for tp, a in m.get("assignments", {}).items() if tp.rpartition("-")[0] in going for b in a["replicas"])
    return sum(counts(states.get(replica, "NonExistentReplica")) for replica in named)


class Gauge(NamedTuple):
    """A gauge of the active controller: its name, first release, field in KafkaController, and the function that computes it."""

    name: str
    since: str
    field: str
    count: Callable[[Memory], int]


# fmt: off
# Counts of partitions and topics are those at the end of the controller's last event, because Kafka refreshes them there.
GAUGES = (
    Gauge("OfflinePartitionsCount",          "0.8.0", "offlinePartitionCount",           _offline),
    Gauge("PreferredReplicaImbalanceCount",  "0.8.0", "preferredReplicaImbalanceCount",  _imbalanced),
    Gauge("GlobalTopicCount",                "1.0",   "globalTopicCount",                lambda m: len(m.get("all_topics", ()))),
    Gauge("GlobalPartitionCount",            "1.0",   "globalPartitionCount",            lambda m: len(m.get("leadership", ()))),
    Gauge("TopicsToDeleteCount",             "2.4",   "topicsToDeleteCount",             lambda m: len(_being_deleted(m))),
    Gauge("ReplicasToDeleteCount",           "2.4",   "replicasToDeleteCount",
          lambda m: _replicas_being_deleted(m, lambda state: state != "ReplicaDeletionSuccessful")),
    Gauge("TopicsIneligibleToDeleteCount",   "2.4",   "ineligibleTopicsToDeleteCount",
          lambda m: len(m.get("topics_ineligible_for_deletion", ()))),
    Gauge("ReplicasIneligibleToDeleteCount", "2.4",   "ineligibleReplicasToDeleteCount",
          lambda m: _replicas_being_deleted(m, lambda state: state == "ReplicaDeletionIneligible")),
)
# fmt: on

# ---------------------------------------------------------------- one broker's numbers


class Statistic(NamedTuple):
    """The values of one Kafka metric at one broker, with the parts of its JMX name."""

    broker: int
    # The type and name of the MBean. A field of a Kafka class without an MBean has the type "" and the field's name.
    type: str
    name: str
    # "gauge" (`values` has one number), "meter" (times of occurrences, in ms since the broker's start) or "times" (durations in
    # ms).
    kind: str
    values: tuple[int, ...]
    # The time since the broker's start.
    age_ms: int = 0
    # The MBean's domain without "kafka.".
    domain: str = "controller"

    @property
    def mbean(self) -> str:
        """The name of the metric in JMX; "" for a field without an MBean."""
        name = "" if self.type.endswith("-metrics") else f",name={self.name}"  # in these types the name is that of an attribute
        return f"kafka.{self.domain}:type={self.type}{name}" if self.type else ""


def statistics(records: Sequence[Record]) -> list[Statistic]:
    """Return each metric of the release, sorted by broker, for each broker that runs at the end of the journal.

    Raises UserError for a recording of real brokers, which has no metrics.
    """
    if records[0].fields.get("world") == "recorded":
        raise UserError("A recording of real brokers has no metrics: play it with Lab.play(recording), and ask that lab.")
    release, now_ms = records[0].fields["release"], records[-1].at_ms
    fold, brokers, added = Fold(), dict[int, _Broker](), replication_statistics.AddingReplicas()
    for record in records:
        fold.add(record)
        added.record(record)
        if record.kind == "start":
            brokers[record.fields["broker"]] = _Broker(record.at_ms, design_of(rules(release)))
        elif record.kind == "stop":
            del brokers[record.fields["broker"]]
        elif (broker := brokers.get(record.id.node)) is not None:
            broker.note(record, fold.state["nodes"][str(record.id.node)]["controller"])
    found: list[Statistic] = []
    for n, broker in sorted(brokers.items()):
        found += broker.numbers(n, fold.state["nodes"].get(str(n), EMPTY_NODE), release, now_ms)
        for name, count in replication_statistics.counts(fold.state, added, n, records[0].fields):
            found.append(Statistic(n, "ReplicaManager", name, "gauge", (count,), now_ms - broker.since_ms, "server"))
    return found


class _Broker:
    """Counts and times for the metrics of one process of a broker, from the journal records since its start."""

    def __init__(self, since_ms: int, design: Design) -> None:
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
        yield gauge("KafkaController", "ActiveControllerCount", int(_is_controller(n, memory, self.design)))
        # Before 1.0 they were computed when they were read.
        gauges = self.gauges if is_since("1.0", release) else _counts(n, memory, self.design)
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
"""Up to 1.0 a partition counts as offline if its leader is not registered; 1.1 is assumed to be the first release that counts
partitions in the state OfflinePartition, because the known releases are 0.8.2, 1.0 and 2.8."""


def _counts(n: int, memory: Memory, design: Design) -> dict[str, int]:
    """Each gauge by name; {} if `n` is no controller in its own memory."""
    if not _is_controller(n, memory, design):
        return {}
    return {gauge.name: gauge.count(memory) for gauge in GAUGES} | {BEFORE_STATES: _without_a_live_leader(memory)}


def _is_controller(n: int, memory: Memory, design: Design) -> bool:
    """By its own memory, whatever `/controller` names. Source: KafkaController.isActive (0.8.1, 2.8)."""
    # In early releases a broker is the controller if it has channels to brokers, later if its active controller id is its own
    # id.
    return bool(memory.get("has_channels", False) if design.active_by_channels else memory.get("active_controller_id", -1) == n)


# ---------------------------------------------------------------- as a table, and for Prometheus

QUANTILES = (0.5, 0.99)
COLUMNS = {"metric": "string", "attribute": "string", "field": "string", "mbean": "string"}


def table(found: Sequence[Statistic]) -> pd.DataFrame:
    """Return one row per metric in `found` and attribute of the metric, such as Count or Max in JMX; one column per broker.

    Timers are in ms, MeanRate is per second; timers without values are left out.
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
    whole = journal_tables.table((missing | row for row in rows.values()), types).set_index(["metric", "attribute"])
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
    """Interpolated between the two nearest values, as in Kafka's metrics library; `share` is from 0 to 1."""
    ordered, position = sorted(values), share * (len(values) + 1)
    if position < 1 or position >= len(values):
        return ordered[0 if position < 1 else -1]
    lower = ordered[int(position) - 1]
    return lower + (position - int(position)) * (ordered[int(position)] - lower)


def exposition(found: Sequence[Statistic], run: str) -> str:
    """Return the metrics `found` in Prometheus's text format, such as `kafka_controller_KafkaController_ActiveControllerCount`.

    Version 0.0.4 of the format; the labels are `broker` and `run`. A metric without an MBean is left out.
    """
    families: dict[str, list[str]] = {}
    for s in found:
        if s.mbean:
            name = re.sub(r"\W", "_", f"kafka_{s.domain}_{s.type}_{s.name}") + ("_total" if s.kind == "meter" else "")
            # Timers are summaries, meters counters.
            kind = {"gauge": "gauge", "meter": "counter", "times": "summary"}[s.kind]
            lines = families.setdefault(name, [f"# HELP {name} {s.mbean}", f"# TYPE {name} {kind}"])
            own = f'broker="{s.broker}",run="{_escaped(run)}"'
            lines += [f"{name}{suffix}{{{own}{more}}} {_number(value)}" for suffix, more, value in _samples(s)]
    return "".join(f"{line}\n" for lines in families.values() for line in lines)


def _samples(s: Statistic) -> Iterator[tuple[str, str, float]]:
    """Per line: the suffix of the metric's name, more labels, and the value."""
    if s.kind != "times":
        yield "", "", s.values[0] if s.kind == "gauge" else len(s.values)
        return
    for share in QUANTILES if s.values else ():
        yield "", f',quantile="{share}"', _quantile(s.values, share)
    yield "_sum", "", sum(s.values)
    yield "_count", "", len(s.values)


def _escaped(words: str) -> str:
    return words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
