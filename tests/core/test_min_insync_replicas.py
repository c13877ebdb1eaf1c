"""`min.insync.replicas`: the requests that a leader refuses, since which release, and the change of the setting."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.cluster import data_plane
from kcontrol.cluster.world import World
from kcontrol.core.znodes import topic_config_path
from kcontrol.search.invariants import violation
from tests.core.durability import DURABLE
from tests.core.logs import fetch, log, produce, values, walk
from tests.core.support import T0, cluster, of_kind, settle

TWO = {"min.insync.replicas": "2"}
SINCE_0_8_2 = ("0.8.2", "0.9", "0.10.2", "0.11.0", "1.0", "1.1", "2.4", "2.8", "3.9")


def with_setting(topic_config: dict[str, str], replicas: tuple[int, ...] = (1, 2, 3), **settings: Any) -> World:
    """A quiet cluster with one partition whose topic has these settings; the controller has no replica of it."""
    world = cluster({}, brokers=(4, *replicas), data=True, **settings)
    settle(world, ("create_topic", "t", (replicas,), topic_config))
    return world


def isr_of_one(world: World) -> None:
    """Lets both followers of broker 1 leave the ISR: they are frozen when the leader appends a record."""
    for follower in (2, 3):
        world.step(("freeze", follower))
    produce(world, "seen by nobody else", acks="1")
    for follower in (2, 3):
        settle(world, ("shrink_isr", 1, "t-0", follower))


def answers(world: World) -> list[str]:
    return [r.fields["body"]["error"] for r in of_kind(world, "respond") if r.fields["correlation_id"].endswith("-Produce")]


@pytest.mark.parametrize("release", SINCE_0_8_2)
def test_acks_all_is_refused_before_the_append(release: str) -> None:
    """With an ISR smaller than the setting a leader answers NOT_ENOUGH_REPLICAS, and its log stays as it was."""
    # Source: Partition.appendMessagesToLeader (0.8.2.2), Partition.appendRecordsToLeader (1.0.2, 2.8.2, 3.9.0).
    world = with_setting(TWO, release=release)
    isr_of_one(world)
    produce(world, "refused")
    assert answers(world)[-1] == "NOT_ENOUGH_REPLICAS"
    assert values(world)[1] == "seen by nobody else"
    assert [promise.value for promise in world.acknowledged[T0]] == ["seen by nobody else"]


def isr_shrinks_below_the_setting(release: str) -> World:
    """A record with acks=all waits for two frozen followers, and both leave the ISR."""
    world = with_setting(TWO, release=release)
    for follower in (2, 3):
        world.step(("freeze", follower))
    produce(world, "waits")
    for follower in (2, 3):
        settle(world, ("shrink_isr", 1, "t-0", follower))
    return world


@pytest.mark.parametrize("release", SINCE_0_8_2[:-1])
def test_acks_all_is_refused_after_the_append(release: str) -> None:
    """A record that waits while the ISR shrinks below the setting is committed, and its producer gets an error although it is."""
    # Source: Partition.checkEnoughReplicasReachOffset (0.8.2.2, 2.8.2).
    world = isr_shrinks_below_the_setting(release)
    assert answers(world) == ["NOT_ENOUGH_REPLICAS_AFTER_APPEND"]
    assert (values(world)[1], log(world, 1).high_watermark) == ("waits", 1)
    assert T0 not in world.acknowledged


def test_since_3_7_the_high_watermark_waits_for_the_setting() -> None:
    """In 3.9 nothing is committed while the ISR is smaller than the setting: the record waits until a follower is in sync."""
    # Source: Partition.maybeIncrementLeaderHW (3.7.0, KAFKA-15583).
    world = isr_shrinks_below_the_setting("3.9")
    assert (answers(world), log(world, 1).high_watermark) == ([], 0)
    settle(world, ("thaw", 2))
    assert (answers(world), log(world, 1).high_watermark) == (["NONE"], 1)


@pytest.mark.parametrize("release", SINCE_0_8_2)
def test_other_acks_do_not_ask(release: str) -> None:
    """acks=1 is accepted by an ISR of any size."""
    world = with_setting(TWO, release=release)
    isr_of_one(world)
    produce(world, "accepted", acks="1")
    assert answers(world) == ["NONE", "NONE"]


@pytest.mark.parametrize("release", ["0.8.0", "0.8.1"])
def test_before_0_8_2_there_is_no_such_setting(release: str) -> None:
    """A leader of 0.8.0 or 0.8.1 reads no such setting and accepts acks=all. Source: Partition.scala (0.8.0, 0.8.1.1)."""
    world = with_setting({}, release=release, config=BrokerConfig(min_insync_replicas=2))
    isr_of_one(world)
    produce(world, "accepted")
    assert answers(world)[-1] == "NONE"
    assert not of_kind(world, "log_config")


def test_an_isr_as_large_as_the_setting_is_enough() -> None:
    """Two replicas in sync are enough for a setting of two: only a smaller ISR is refused."""
    world = with_setting(TWO)
    world.step(("freeze", 3))
    produce(world, "waits")
    fetch(world, 2, 2)
    settle(world, ("shrink_isr", 1, "t-0", 3))
    produce(world, "accepted")
    world.run()
    assert answers(world) == ["NONE", "NONE"]


def test_the_brokers_setting_counts_where_the_topic_has_none() -> None:
    """A topic without a setting of its own takes that of server.properties, and a topic's own setting goes first."""
    config = BrokerConfig(min_insync_replicas=2)
    for topic, error in (({}, "NOT_ENOUGH_REPLICAS"), ({"min.insync.replicas": "1"}, "NONE")):
        world = with_setting(topic, config=config)
        isr_of_one(world)
        produce(world, "x")
        assert answers(world)[-1] == error


@pytest.mark.parametrize(("release", "error"), [("2.8", "NOT_ENOUGH_REPLICAS"), ("3.9", "NONE")])
def test_more_than_there_are_replicas(release: str, error: str) -> None:
    """A setting of 3 with two replicas stops every acks=all; since 3.7 no more than the replicas are asked for (KAFKA-15583)."""
    # Source: Partition.appendRecordsToLeader (2.8.2), Partition.effectiveMinIsr (3.7.0).
    world = with_setting({"min.insync.replicas": "3"}, replicas=(1, 2), release=release)
    produce(world, "x")
    world.run()
    assert answers(world) == [error]


def test_a_changed_setting_is_read_again() -> None:
    """After the tool has altered a topic, a running leader goes by the new setting; a frozen broker reads it when it goes on."""
    world = with_setting(TWO)
    isr_of_one(world)
    settle(world, ("alter_topic", "t", {"min.insync.replicas": "1"}))
    produce(world, "accepted")
    assert answers(world)[-1] == "NONE"
    assert [log(world, n).min_insync_replicas for n in (1, 2, 3)] == [1, 2, 2]
    settle(world, ("thaw", 2))
    assert log(world, 2).min_insync_replicas == 1


def test_a_changed_setting_is_read_for_its_topic_alone() -> None:
    """After the tool has altered t, a broker reads the settings of t and of no other topic. Source: TopicConfigHandler (2.8)."""
    world = with_setting(TWO)
    settle(world, ("create_topic", "u", ((1, 2, 3),)))
    before = len(world.journal.records)
    settle(world, ("alter_topic", "t", {"min.insync.replicas": "1"}))
    read = {path for r in of_kind(world, "read", before) if r.id.node == 1 for path in r.fields["paths"]}
    assert (topic_config_path("t") in read, topic_config_path("u") in read) == (True, False)


def test_a_setting_without_a_notification_is_not_read() -> None:
    """Without a notification below /config/changes brokers keep the setting they have read, until they start again."""
    # Source: TopicConfigManager (0.8.2), DynamicConfigManager (2.8).
    world = with_setting(TWO)
    settle(world, ("set", "/config/topics/t", '{"version":1,"config":{}}'))
    assert [log(world, n).min_insync_replicas for n in (1, 2, 3)] == [2, 2, 2]
    settle(world, ("kill", 3))
    settle(world, ("start", 3))
    assert [log(world, n).min_insync_replicas for n in (1, 2, 3)] == [2, 2, 1]


def test_a_session_that_has_ended_does_not_lose_the_setting() -> None:
    """A broker that cannot read the settings while its session is renewed reads them with its next event."""
    world = cluster({}, brokers=(4, 1, 2, 3), data=True)
    world.step(("create_topic", "t", ((1, 2, 3),), TWO))
    while "t-0" not in map(str, world.processes[1].driver.broker.logs):
        world.step(world.actions()[0])
    settle(world, ("expire_session", 1))
    assert not of_kind(world, "handler_error")
    assert [log(world, n).min_insync_replicas for n in (1, 2, 3)] == [2, 2, 2]


@pytest.mark.parametrize("seed", range(4))
def test_with_two_in_sync_no_single_loss_of_a_disk_loses_a_record(seed: int) -> None:
    """In random runs that need two in sync each acks=all record was on two replicas when acknowledged; logs agree and survive."""
    world = with_setting(TWO, faults=("kill", "start", "expire_session", "freeze", "thaw", "shrink_isr", "produce"))
    for _ in walk(world, seed, 150):
        for record in world.last_step:
            if record.kind == "acknowledged" and record.fields["acks"] == "all":
                has = [found[T0].records for found in data_plane.replicas(world).values() if T0 in found]
                offset, value = record.fields["offset"], record.fields["value"]
                assert sum(len(r) > offset and r[offset].value == value for r in has) >= 2
        assert violation(world, DURABLE) is None


def test_the_random_runs_are_refused_now_and_then() -> None:
    """The runs above meet the setting: some producers are refused, and some are not."""
    seen = set[str]()
    for seed in range(4):
        world = with_setting(TWO, faults=("kill", "start", "expire_session", "freeze", "thaw", "shrink_isr", "produce"))
        for _ in walk(world, seed, 150):
            pass
        seen |= set(answers(world))
    assert {"NONE", "NOT_ENOUGH_REPLICAS"} <= seen
