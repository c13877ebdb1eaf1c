"""A broker creates the offsets topic when it handles FindCoordinator: with how many replicas, and when it does not.

Source: getTopicMetadata of KafkaApis.scala (0.9.0.1), createGroupMetadataTopic (0.10.2.2), createInternalTopic (0.11.0, 2.7.2),
ZkAdminManager.createTopics and AdminUtils.assignReplicasToBrokers (2.8.2).
"""

from __future__ import annotations

import pytest

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.sessions import SessionState
from kcontrol.cluster.world import World
from kcontrol.core.znodes import decode_topic, decode_topic_config, topic_config_path, topic_path
from kcontrol.group.context import GroupConfig, GroupContext
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.group.group_rules import group_rules
from kcontrol.journal.fold import fold
from kcontrol.lab.lab import Lab
from tests.core.snapshots import without_defaults
from tests.core.support import settle


def asked(release: str, brokers: tuple[int, ...], **config: int) -> World:
    """A cluster at rest after anna has sent FindCoordinator to broker 1."""
    world = World(Settings(release, brokers, consumers={"anna": "billing"}, group_config=config))
    for broker in brokers:
        world.step(("start", broker))
    world.run()
    settle(world, ("find_coordinator", "anna", 1))
    return world


def replicas(world: World) -> list[int]:
    """How many replicas each partition of the offsets topic has; [] without the topic."""
    (found,) = world.tool.read([topic_path(OFFSETS_TOPIC)], False)
    return [] if found is None else [len(each.replicas) for each in decode_topic(found.data).partitions.values()]


@pytest.mark.parametrize("release", ["0.9", "0.10.2", "0.11.0", "2.4", "2.8", "3.9"])
@pytest.mark.parametrize(("brokers", "factor"), [(1, 3), (2, 3), (3, 3), (3, 2), (2, 1)])
def test_how_many_replicas_a_new_offsets_topic_gets(release: str, brokers: int, factor: int) -> None:
    """Up to 0.10.2 the topic gets a replica on each live broker, at most the factor; since 0.11 the factor, or is not created."""
    world = asked(release, tuple(range(1, brokers + 1)), replication_factor=factor, partitions=2)
    reduced = release in ("0.9", "0.10.2")
    assert replicas(world) == ([min(brokers, factor)] * 2 if reduced else [factor] * 2 if factor <= brokers else [])
    assert without_defaults(fold(world.journal.records)) == without_defaults(world.snapshot())


@pytest.mark.parametrize(("release", "found"), [("0.10.2", 3), ("0.11.0", None)])
def test_a_broker_that_knows_no_live_broker(release: str, found: int | None) -> None:
    """A broker with empty metadata tries the whole factor up to 0.10.2, and creates nothing since 0.11."""
    assert GroupContext(group_rules(release), GroupConfig.of(release)).replicas_of_new_topic(0) == found


def test_the_first_answer_names_no_coordinator_and_the_next_one_does() -> None:
    """The request that creates the topic gets COORDINATOR_NOT_AVAILABLE; a later one gets the leader of the group's partition."""
    world = asked("2.8", (1, 2, 3), partitions=50)
    assert (world.consumers["anna"].error, world.consumers["anna"].coordinator) == ("COORDINATOR_NOT_AVAILABLE", None)
    assert len(replicas(world)) == 50
    world.step(("find_coordinator", "anna", 2))
    leader = world.processes[1].driver.broker.metadata[world.processes[1].driver.group.topic_partition("billing")].leader
    assert world.consumers["anna"].coordinator == (leader, 1)


def test_enough_brokers_later() -> None:
    """A broker of 2.8 that has refused the creation creates the topic at the next request, after a third broker has started."""
    world = asked("2.8", (1, 2, 3))
    assert replicas(world) == [3]
    lab = Lab(3, consumers={"anna": "billing"}, runs=None).kill(3).run().group.find_coordinator("anna", 1).run()
    assert topic_path(OFFSETS_TOPIC) not in lab.state["znodes"]
    lab.start(3).run().group.find_coordinator("anna", 1).run()
    assert topic_path(OFFSETS_TOPIC) in lab.state["znodes"]


def test_an_existing_topic_stays_as_it_is() -> None:
    """A broker that does not know the offsets topic yet, although ZooKeeper has it, writes nothing."""
    world = World(Settings("2.8", (1, 2, 3), consumers={"anna": "billing"}))
    for broker in (1, 2, 3):
        world.step(("start", broker))
    world.run()
    world.step(("create_topic", OFFSETS_TOPIC, ((2,),)))
    assert writes_nothing(world)
    world.run()
    assert replicas(world) == [1]


def test_the_topic_gets_its_setting() -> None:
    """The broker writes the segment size that the coordinators' settings have, before the topic itself (offsetsTopicConfigs)."""
    world = asked("0.9", (1, 2, 3), segment_bytes=400)
    (found,) = world.tool.read([topic_config_path(OFFSETS_TOPIC)], False)
    assert found is not None and decode_topic_config(found.data) == {"segment.bytes": "400"}
    first, second = [r for r in world.journal.records if r.kind == "write" and OFFSETS_TOPIC in str(r.fields["ops"])][:2]
    assert (first.id.node, first.fields["ops"][0][1]) == (1, topic_config_path(OFFSETS_TOPIC))
    assert (second.id.node, second.fields["ops"][0][1]) == (1, topic_path(OFFSETS_TOPIC))
    assert first.cause == second.cause


# ---------------------------------------------------------------- when a broker writes nothing


def started(brokers: int, release: str = "2.8") -> World:
    """A cluster at rest without an offsets topic; anna has sent no request."""
    world = World(Settings(release, tuple(range(1, brokers + 1)), consumers={"anna": "billing"}))
    for broker in range(1, brokers + 1):
        world.step(("start", broker))
    world.run()
    return world


def writes_nothing(world: World) -> bool:
    """Whether FindCoordinator, sent to broker 1, gets COORDINATOR_NOT_AVAILABLE and changes no znode."""
    before, count = world.snapshot()["znodes"], len(world.journal.records)
    world.step(("find_coordinator", "anna", 1))
    assert world.consumers["anna"].error == "COORDINATOR_NOT_AVAILABLE"
    written = [record for record in world.journal.records[count:] if record.kind == "write"]
    return world.snapshot()["znodes"] == before and not written


@pytest.mark.parametrize(("release", "nothing"), [("0.10.2", False), ("0.11.0", True), ("2.8", True), ("3.9", True)])
def test_a_refused_creation_writes_nothing(release: str, *, nothing: bool) -> None:
    """With two live brokers for three replicas FindCoordinator since 0.11 changes no znode, of the topic or of its settings."""
    assert writes_nothing(started(2, release)) is nothing


@pytest.mark.parametrize("release", ["0.10.2", "2.8"])
def test_too_few_registered_brokers(release: str) -> None:
    """If the metadata name three live brokers and ZooKeeper two, nothing is created; the topic is created with three again."""
    # Source: AdminUtils.assignReplicasToBrokers (0.10.2, 2.8), which gets the brokers of ZooKeeper.
    world = started(3, release)
    world.step(("expire_session", 3))
    assert len(world.processes[1].driver.broker.live_brokers) == 3 and writes_nothing(world)
    world.run()
    assert not writes_nothing(world) and replicas(world) == [3] * len(replicas(world)) != []


def test_a_broker_without_a_session_creates_nothing() -> None:
    """A broker whose session has expired writes nothing until it has registered again, though three brokers are registered."""
    world = started(4)
    world.step(("expire_session", 1))
    assert (world.processes[1].session, writes_nothing(world)) == (SessionState.EXPIRED, True)
    world.step(("renew", 1))
    assert (world.processes[1].session, writes_nothing(world)) == (SessionState.EXPIRING, True)
    world.run()
    assert not writes_nothing(world)


def test_a_topic_of_the_metadata_is_not_created_again() -> None:
    """A broker whose metadata have the offsets topic creates nothing, also if an administrator has deleted its znode."""
    world = asked("2.8", (1, 2, 3))
    (topic,) = (path for path in world.snapshot()["znodes"] if path == topic_path(OFFSETS_TOPIC))
    for path in sorted((path for path in world.snapshot()["znodes"] if path.startswith(topic)), key=len, reverse=True):
        world.step(("delete", path))
    count = len(world.journal.records)
    world.step(("find_coordinator", "anna", 1))
    assert not [record for record in world.journal.records[count:] if record.kind == "write"] and replicas(world) == []
