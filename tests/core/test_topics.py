"""Topics that appear, grow and vanish, between one step and the next."""

from __future__ import annotations

import pytest

from kcontrol.core.model import ReplicaAssignment
from kcontrol.core.znodes import TopicZnode, decode_topic, encode_topic, topic_path
from tests.core.support import T0, cluster, of_kind, settle, stored


def test_a_topic_that_vanishes_is_forgotten() -> None:
    """After its znodes were deleted from outside, a topic leaves the controller's memory, and is not written any more."""
    # Source: KafkaController.processTopicChange (2.8).
    world = cluster()
    for path in ("/partitions/0/state", "/partitions/0", "/partitions", ""):
        world.step(("delete", topic_path("u") + path))
    world.run()
    controller = world.processes[1].driver.controller
    assert ({tp.topic for tp in controller.assignments}, {tp.topic for tp in controller.leadership}) == ({"t"}, {"t"})
    assert (controller.all_topics, set(controller.topic_ids)) == ({"t"}, {"t"})
    assert (topic_path("u"), False) not in world.processes[1].driver.znode_handlers
    settle(world, ("kill", 3))
    assert set(stored(world)) == {"t-0", "t-1"}
    assert of_kind(world, "handler_error") == []


def test_two_topics_in_one_change_are_both_created() -> None:
    """Two topics that appear before the controller looks come with one event, and both get their leaders."""
    world = cluster(topics={})
    world.step(("create_topic", "a", ((1, 2),)))
    world.step(("create_topic", "b", ((2, 3),)))
    assert len([r for r in of_kind(world, "notify") if r.fields["path"] == "/brokers/topics"]) == 1
    world.run()
    assert stored(world) == {"a-0": (1, (1, 2)), "b-0": (2, (2, 3))}


def test_a_topic_that_comes_between_reading_and_watching_is_not_missed() -> None:
    """A topic that is created while the controller handles another one has an event of its own, since the watch was set anew."""
    world = cluster(topics={})
    world.step(("create_topic", "a", ((1, 2),)))
    world.step(("deliver_notification", 1))
    settle(world, ("begin", 1, "controller"), ("advance", 1, "controller"), ("create_topic", "b", ((2, 3),)))
    assert set(stored(world)) == {"a-0", "b-0"}


def test_a_topic_that_grows_gets_leaders_for_what_is_new() -> None:
    """A partition that the topic znode has gained is created, and the others are left alone; its rewriting finds nothing."""
    # Source: KafkaController.processPartitionModifications (2.8).
    world = cluster({"t": ((1, 2, 3),)})
    before = len(world.journal.records)
    znode = decode_topic(world.zk.tree()[topic_path("t")].data)
    grown = TopicZnode(znode.partitions | {1: ReplicaAssignment((3, 1))}, znode.topic_id)
    for text in (encode_topic(grown).decode(), encode_topic(grown).decode()):
        settle(world, ("set", topic_path("t"), text))
    assert stored(world) == {"t-0": (1, (1, 2, 3)), "t-1": (3, (3, 1))}
    assert {str(r.fields["subject"]) for r in of_kind(world, "change", before)} == {"t-1", "t-1@3", "t-1@1"}
    assert world.processes[1].driver.controller.replicas(T0) == (1, 2, 3)


def test_a_topic_whose_replicas_are_all_dead_waits_for_them() -> None:
    """Its partitions stay New until one of its brokers comes; then that one leads."""
    world = cluster(topics={}, brokers=(1, 2))
    settle(world, ("create_topic", "a", ((3, 4),)))
    assert stored(world) == {}
    settle(world, ("start", 4))
    assert stored(world) == {"a-0": (4, (4,))}


@pytest.mark.parametrize("release", ["1.1", "2.4", "2.8", "3.9"])
def test_a_topic_that_is_gone_when_its_expansion_is_handled_gains_nothing(release: str) -> None:
    """The znode of t is written and then deleted before the controller reads it: no handler fails, and t is forgotten."""
    # Source: KafkaZkClient.getFullReplicaAssignmentForTopics, `case Code.NONODE` (2.8).
    world = cluster({"t": ((2, 3),)}, release=release)
    before = len(world.journal.records)
    world.step(("set", topic_path("t"), '{"version":1,"partitions":{"0":[2,3],"1":[3,2]}}'))
    for below in ("/partitions/0/state", "/partitions/0", "/partitions", ""):
        world.step(("delete", topic_path("t") + below))
    world.run()
    assert of_kind(world, "handler_error", before) == []
    assert world.processes[1].driver.controller.assignments == {}
