"""Computes Kafka's gauges of ReplicaManager for one broker: counts of the partitions that the broker believes to lead.

Source: ReplicaManager.scala, Partition.scala: isUnderReplicated, isUnderMinIsr, isAtMinIsr (0.8.0 to 3.9).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kcontrol.broker.replication import EFFECTIVE, MIN_INSYNC_REPLICAS
from kcontrol.core.controller_rules import rules
from kcontrol.core.model import TopicPartition
from kcontrol.core.releases import is_since
from kcontrol.core.znodes import MalformedZnode, decode_topic_config, topic_config_path
from kcontrol.journal.journal import Record
from kcontrol.views import folded_state

COUNTS_THE_ORIGINAL = "2.5"
"""From this release on, replicas that a reassignment adds do not make a partition under-replicated (KIP-352).

Source: OngoingReassignmentState (2.8.2).
"""


class LeaderPartition(NamedTuple):
    """A partition in its leader's memory: how many replicas and how many ISR members it has, and its min.insync.replicas.

    From 2.5 on the replicas that a reassignment adds are not counted in `replication_factor`.
    """

    replication_factor: int
    in_sync: int
    min_insync_replicas: int


class Gauge(NamedTuple):
    """A gauge of a broker: the number of partitions that the broker leads and for which `counts` returns True."""

    # The name in Kafka.
    name: str
    # The first release with the gauge.
    since: str
    counts: Callable[[LeaderPartition], bool]


# fmt: off
GAUGES = (
    Gauge("UnderReplicatedPartitions", "0.8.0", lambda p: p.in_sync < p.replication_factor),
    Gauge("UnderMinIsrPartitionCount", "1.0",   lambda p: p.in_sync < p.min_insync_replicas),   # KIP-164
    Gauge("AtMinIsrPartitionCount",    "2.4",   lambda p: p.in_sync == p.min_insync_replicas),  # KIP-427
)
# fmt: on


class AddingReplicas:
    """For each broker and partition, the number of replicas that a reassignment adds, as the broker's last LeaderAndIsr says."""

    def __init__(self) -> None:
        self._sent: dict[str, Any] = {}
        self._adding: dict[tuple[str, str], int] = {}

    def record(self, r: Record) -> None:
        if r.kind == "send":
            self._sent[str(r.id)] = r.to_json().fields["requests"].get("leader_and_isr")
        elif r.kind == "apply_request" and r.fields["field"] == "hosted":
            f, broker = r.to_json().fields, str(r.id.node)
            named = self._sent[".".join(map(str, f["request"]))]
            for value in (named["values"][at] for at in named["to"][broker]):
                if f["partitions"] is None or value["partition"] in f["partitions"]:
                    self._adding[broker, value["partition"]] = len(value["adding_replicas"])

    def adding(self, broker: str, partition: str) -> int:
        """Return the number of replicas that a reassignment adds to the partition, as this broker knows it.

        Without a reassignment return 0.
        """
        return self._adding.get((broker, partition), 0)


def counts(state: folded_state.State, added: AddingReplicas, broker: int, run: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield (name, value at this broker) for each gauge of the release, such as ("UnderReplicatedPartitions", 2)."""
    found = list(_led(state, added, str(broker), run))
    for gauge in GAUGES:
        if is_since(gauge.since, run["release"]):
            yield gauge.name, sum(map(gauge.counts, found))


def _led(state: folded_state.State, added: AddingReplicas, broker: str, run: Mapping[str, Any]) -> Iterator[LeaderPartition]:
    release = run["release"]
    for partition, held in state["nodes"][broker]["broker"].get("hosted", {}).items():
        if str(held["leadership"]["leader"]) != broker:
            continue
        replicas, in_sync = len(held["replicas"]), len(held["leadership"]["isr"])
        least = _least(state, broker, partition, run)
        if rules(release).min_insync_replicas == EFFECTIVE:
            least = min(least, replicas)
        original = replicas - (added.adding(broker, partition) if is_since(COUNTS_THE_ORIGINAL, release) else 0)
        yield LeaderPartition(original, in_sync, least)


def _least(state: folded_state.State, broker: str, partition: str, run: Mapping[str, Any]) -> int:
    """Return min.insync.replicas of a partition as its leader `broker` has read it.

    If the leader has not read it, return the topic's setting in ZooKeeper, else the brokers' setting in `run`.
    """
    # In a run without logs no leader has read it. `run` are the fields of the journal's first record.
    log = state.get("logs", {}).get(broker, {}).get(partition)
    if log is not None and log["min_insync_replicas"] is not None:
        return int(log["min_insync_replicas"])
    stored = state["znodes"].get(topic_config_path(TopicPartition.parse(partition).topic))
    try:
        said = decode_topic_config(stored[0].encode()).get(MIN_INSYNC_REPLICAS, "") if stored else ""
    except MalformedZnode:
        said = ""
    return int(said) if said.isdecimal() else run.get("min_insync_replicas", 1)
