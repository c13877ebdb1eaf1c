"""Kafka's numbers of ReplicaManager: how the partitions stand that a broker believes to lead, counted when they are asked for.

Source: ReplicaManager.scala, Partition.scala: isUnderReplicated, isUnderMinIsr, isAtMinIsr (0.8.0 to 3.9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kcontrol.generations import rules
from kcontrol.model import TopicPartition
from kcontrol.releases import is_since
from kcontrol.replica.data import EFFECTIVE, MIN_INSYNC_REPLICAS
from kcontrol.runtime.journal import Record
from kcontrol.views import scene
from kcontrol.znodes import MalformedZnode, decode_topic_config, topic_config_path

COUNTS_THE_ORIGINAL = "2.5"
"""From this release on replicas that a reassignment adds are not missing (KIP-352). Source: OngoingReassignmentState (2.8.2)."""


class Led(NamedTuple):
    """A partition as its leader knows it: how many replicas it should have, are in sync, and must be for acks=all."""

    replication_factor: int
    in_sync: int
    min_insync_replicas: int


class Gauge(NamedTuple):
    """Kafka's name of a count of partitions, since when, and which partitions count."""

    name: str
    since: str
    counts: Callable[[Led], bool]


# fmt: off
GAUGES = (
    Gauge("UnderReplicatedPartitions", "0.8.0", lambda p: p.in_sync < p.replication_factor),
    Gauge("UnderMinIsrPartitionCount", "1.0",   lambda p: p.in_sync < p.min_insync_replicas),   # KIP-164
    Gauge("AtMinIsrPartitionCount",    "2.4",   lambda p: p.in_sync == p.min_insync_replicas),  # KIP-427
)
# fmt: on


class Told:
    """What brokers have taken over from LeaderAndIsr about the replicas that are being added."""

    def __init__(self) -> None:
        self._sent: dict[str, Any] = {}
        self._adding: dict[tuple[str, str], int] = {}

    def note(self, r: Record) -> None:
        if r.kind == "send":
            self._sent[str(r.id)] = r.plain().fields["requests"].get("leader_and_isr")
        elif r.kind == "adopt" and r.fields["field"] == "hosted":
            f, broker = r.plain().fields, str(r.id.node)
            named = self._sent[".".join(map(str, f["request"]))]
            for value in (named["values"][at] for at in named["to"][broker]):
                if f["partitions"] is None or value["partition"] in f["partitions"]:
                    self._adding[broker, value["partition"]] = len(value["adding_replicas"])

    def adding(self, broker: str, partition: str) -> int:
        """How many of a partition's replicas this broker takes for added by a reassignment."""
        return self._adding.get((broker, partition), 0)


def counts(state: scene.State, told: Told, broker: int, run: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Each gauge that the release has, with its value at this broker; `run` is the journal's first record."""
    found = list(_led(state, told, str(broker), run))
    for gauge in GAUGES:
        if is_since(gauge.since, run["release"]):
            yield gauge.name, sum(map(gauge.counts, found))


def _led(state: scene.State, told: Told, broker: str, run: Mapping[str, Any]) -> Iterator[Led]:
    release = run["release"]
    for partition, held in state["nodes"][broker]["broker"].get("hosted", {}).items():
        if str(held["value"]["leader"]) != broker:
            continue
        replicas, in_sync = len(held["replicas"]), len(held["value"]["isr"])
        least = _least(state, broker, partition, run)
        if rules(release).min_insync_replicas == EFFECTIVE:
            least = min(least, replicas)
        original = replicas - (told.adding(broker, partition) if is_since(COUNTS_THE_ORIGINAL, release) else 0)
        yield Led(original, in_sync, least)


def _least(state: scene.State, broker: str, partition: str, run: Mapping[str, Any]) -> int:
    """The setting that the leader has read, and in a run without logs the topic's, or else the brokers'."""
    log = state.get("logs", {}).get(broker, {}).get(partition)
    if log is not None and log["min_insync_replicas"] is not None:
        return int(log["min_insync_replicas"])
    stored = state["znodes"].get(topic_config_path(TopicPartition.parse(partition).topic))
    try:
        said = decode_topic_config(stored[0].encode()).get(MIN_INSYNC_REPLICAS, "") if stored else ""
    except MalformedZnode:
        said = ""
    return int(said) if said.isdecimal() else run.get("min_insync_replicas", 1)
