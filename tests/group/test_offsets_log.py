"""The log of the offsets topic in a simulated cluster: acks, the high watermark, truncation, errors of an append, and loads."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from kcontrol.cluster.world import World
from kcontrol.core.model import TopicPartition
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.group.offset_expiration import EXPIRY_TIMER
from tests.core.support import settle
from tests.group.test_coordinators_in_a_cluster import agrees, cluster, stable

T = TopicPartition(OFFSETS_TOPIC, 0)
COMMIT = ("commit", "a", "t-0", 7)


def logs(world: World) -> dict[int, Any]:
    return {n: p.driver.broker.logs[T] for n, p in world.processes.items()}


def texts(world: World, broker: int) -> list[str]:
    return [record.value for record in logs(world)[broker].records]


def until(world: World, kind: str) -> None:
    while (action := next(action for action in world.actions() if action.routine))[0] != kind:
        world.step(action)


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_every_replica_has_the_records(release: str) -> None:
    """A commit is acknowledged only after the follower has fetched it, and then stands in the log of each replica."""
    world = stable(release)
    world.step(COMMIT)
    until(world, "fetch")
    assert world.consumers["a"].asked and texts(world, 1)[-1] == "offset 7 of t-0 in g"
    assert len(logs(world)[2].records) == len(logs(world)[1].records) - 1
    world.run()
    assert world.consumers["a"].error == "NONE" and texts(world, 1) == texts(world, 2)
    agrees(world)


def test_a_fork_repeats_an_append_that_waits() -> None:
    """A fork of a world with an append that waits for its replicas goes on like the original."""
    world = stable()
    world.step(COMMIT)
    until(world, "fetch")
    twin = world.fork()
    assert twin.fingerprint() == world.fingerprint()
    for one in (world, twin):
        one.run()
    assert twin.fingerprint() == world.fingerprint() and twin.consumers["a"].error == "NONE"


@pytest.mark.parametrize(("release", "error"), [("0.9", "REQUEST_TIMED_OUT"), ("2.8", "REQUEST_TIMED_OUT")])
def test_a_commit_waits_for_five_seconds(release: str, error: str) -> None:
    """If a frozen follower stays in the ISR, the commit ends with REQUEST_TIMED_OUT after offsets.commit.timeout.ms."""
    # The record stays in the log. Source: storeOffsets of GroupMetadataManager.scala (2.8), DelayedProduce.onExpiration.
    world = stable(release)
    world.step(("freeze", 2))
    world.step(COMMIT)
    (timer,) = [
        record for record in world.last_step if record.kind == "set_timer" and record.fields["timer"].startswith("append")
    ]
    world.run()
    assert (world.consumers["a"].error, timer.fields["fires_at_ms"] - timer.at_ms) == (error, 5_000)
    assert texts(world, 1)[-1] == "offset 7 of t-0 in g" and not logs(world)[1].waiting
    agrees(world)


@pytest.mark.parametrize(("release", "error"), [("0.9", "NOT_ENOUGH_REPLICAS"), ("2.8", "COORDINATOR_NOT_AVAILABLE")])
def test_too_small_an_isr_refuses_a_commit(release: str, error: str) -> None:
    """With fewer replicas in the ISR than min.insync.replicas nothing is appended; the client's error depends on the release."""
    # Source: storeOffsets (2.8), prepareStoreOffsets (0.9): KAFKA-4086 came with 0.10.1.
    world = stable(release)
    settle(world, ("alter_topic", OFFSETS_TOPIC, {"min.insync.replicas": 2}))
    settle(world, ("kill", 2))
    before = texts(world, 1)
    world.step(COMMIT)
    world.run()
    assert world.consumers["a"].error == error and texts(world, 1) == before
    agrees(world)


@pytest.mark.parametrize(("acks", "error"), [(1, "NONE"), (0, "NONE"), (2, "INVALID_REQUIRED_ACKS")])
def test_required_acks(acks: int, error: str) -> None:
    """With 0 or 1 for offsets.commit.required.acks a commit does not wait for the frozen follower; 2 is no legal acks."""
    # Source: ReplicaManager.appendRecords, isValidRequiredAcks (2.8).
    world = cluster(required_acks=acks)
    world.step(("freeze", 2))
    world.step(COMMIT)
    world.step(("begin", 1, "coordinator"))
    assert world.consumers["a"].error == error
    agrees(world)


def test_a_successor_without_the_tail_does_not_know_the_commit() -> None:
    """With acks 1 a commit is acknowledged, and lost if the next coordinator has not fetched it."""
    world = stable(required_acks=1)
    world.step(COMMIT)
    until(world, "fetch")
    assert (world.consumers["a"].asked, world.consumers["a"].error) == (None, "NONE")
    settle(world, ("kill", 1))
    heir = world.processes[2].driver.group
    assert heir is not None and "g" in heir.groups and "g" not in heir.offsets
    agrees(world)


@pytest.mark.parametrize(("release", "loaded"), [("0.9", False), ("0.10.2", False), ("0.11.0", True), ("2.8", True)])
def test_where_a_load_ends(release: str, *, loaded: bool) -> None:
    """Before 0.11 a load ends at the high watermark, so a record above it is missing; since then at the log end offset."""
    # The next coordinator's high watermark cannot pass the record, since broker 3 in the ISR is frozen. Source:
    # loadGroupsAndOffsets of GroupMetadataManager.scala (0.10.2, 0.11.0).
    world = stable(release, (1, 2, 3), required_acks=1)
    world.step(("freeze", 3))
    world.step(COMMIT)
    until(world, "fetch")
    settle(world, ("fetch", 2, str(T)), ("kill", 1))
    heir = world.processes[2].driver
    assert heir.broker.logs[T].log_end_offset > heir.broker.logs[T].high_watermark
    assert heir.group is not None and ("g" in heir.group.offsets) is loaded
    agrees(world)


def test_the_expiry_has_a_timer_of_its_own() -> None:
    """The timer of a coordinator fires every 600 s; the run after the retention removes the offset and leaves a tombstone."""
    # Source: startup of GroupMetadataManager.scala (2.8), deleteExpiredOffsets (0.9).
    world = cluster("0.9")
    world.step(COMMIT)
    world.run()
    group = world.processes[1].driver.group
    assert group is not None
    times = [world.processes[1].driver.timers[EXPIRY_TIMER].at_ms]
    while group.offsets:
        settle(world, ("fire_timer", 1, EXPIRY_TIMER))
        times.append(world.processes[1].driver.timers[EXPIRY_TIMER].at_ms)
    assert len(times) > 140 and all(600_000 <= after - before < 601_000 for before, after in pairwise(times))
    assert 86_400_000 <= world.now_ms < 87_000_000 + 10_000
    assert {n: texts(world, n)[-1] for n in (1, 2)} == dict.fromkeys((1, 2), "tombstone of t-0 in g")
    agrees(world)
