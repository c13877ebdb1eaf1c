"""Which znodes a controller listens to, release by release, and what a broker that resigns keeps.

Source: KafkaController.onControllerFailover, onControllerResignation and the registrations of ReplicaStateMachine and
PartitionStateMachine (0.8.0, 0.8.1, 0.8.2, 0.9.0, 0.10.2, 0.11.0, 1.0, 1.1, 2.4, 2.8).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.cluster.world import World
from kcontrol.core.model import TopicPartition
from kcontrol.core.releases import PLAYABLE_RELEASES
from kcontrol.core.znodes import REASSIGN_PARTITIONS, encode_reassignment
from tests.core.support import cluster, settle

CHILDREN, DATA = True, False
LISTENS = {  # the path, of what: since which of the releases that are played
    ("/controller", DATA): "0.8.0",
    ("/admin/preferred_replica_election", DATA): "0.8.0",
    ("/admin/reassign_partitions", DATA): "0.8.0",
    ("/brokers/ids", CHILDREN): "0.8.0",
    ("/brokers/topics", CHILDREN): "0.8.0",
    ("/brokers/topics/t", DATA): "0.8.0",
    ("/admin/delete_topics", CHILDREN): "0.8.1",
    ("/isr_change_notification", CHILDREN): "0.9",
    ("/log_dir_event_notification", CHILDREN): "1.0",
    ("/brokers/ids/2", DATA): "1.1",
    ("/brokers/ids/3", DATA): "1.1",
}
CONTROLLER_EPOCH = ("/controller_epoch", DATA)  # 0.8.0 and 0.8.1 alone
EARLY = ("0.8.0", "0.8.1")


def listens(release: str) -> set[tuple[str, bool]]:
    """Return what the controller of a release listens to, brokers 2 and 3 being alive, where topics may be deleted."""
    found = {what for what, since in LISTENS.items() if PLAYABLE_RELEASES.index(since) <= PLAYABLE_RELEASES.index(release)}
    return found | ({CONTROLLER_EPOCH} if release in EARLY else set())


def replace_controller(world: World) -> None:
    """Freeze broker 1, the controller, and end its session: another broker becomes controller."""
    settle(world, ("freeze", 1), ("expire_session", 1))


def second_controller(release: str) -> World:
    """Broker 1 was controller and is frozen with its session ended; of brokers 2 and 3 one has become controller."""
    config = BrokerConfig(delete_topic_enable=True)
    world = cluster({"t": ((2, 3),)}, release=release, config=config)
    replace_controller(world)
    return world


@pytest.mark.parametrize("release", PLAYABLE_RELEASES)
def test_a_new_controller_listens_to_the_znodes_of_its_release(release: str) -> None:
    """After a failover the controller has a handler for each of these paths and for no other."""
    world = second_controller(release)
    (controller,) = (p.driver for n, p in world.processes.items() if n != 1 and p.driver.controller.is_active)
    assert controller.znode_handlers == listens(release)


@pytest.mark.parametrize("release", PLAYABLE_RELEASES)
def test_a_broker_that_resigned_listens_for_the_next_election_alone(release: str) -> None:
    """From 0.8.2 on only the handler of `/controller` is left; 0.8.0 and 0.8.1 unregister no listener."""
    world = second_controller(release)
    before = set(world.processes[1].driver.znode_handlers)
    settle(world, ("thaw", 1))
    left = world.processes[1].driver.znode_handlers
    assert left == (before if release in EARLY else {("/controller", DATA)})


@pytest.mark.parametrize("release", [release for release in PLAYABLE_RELEASES if release not in EARLY])
def test_a_broker_that_resigned_listens_to_no_moving_partition(release: str) -> None:
    """A reassignment is under way when the controller resigns: its handler of the partition's state znode goes too."""
    world = cluster({"t": ((2, 3),)}, brokers=(1, 2, 3, 4), release=release)
    settle(world, ("freeze", 4), ("create", REASSIGN_PARTITIONS, encode_reassignment({TopicPartition("t", 0): (2, 4)}).decode()))
    replace_controller(world)
    settle(world, ("thaw", 1))
    assert world.processes[1].driver.znode_handlers == {("/controller", DATA)}


@pytest.mark.parametrize(
    "release", [release for release in PLAYABLE_RELEASES if PLAYABLE_RELEASES.index(release) >= PLAYABLE_RELEASES.index("0.11.0")]
)
def test_a_broker_that_resigned_remembers_nothing_of_the_cluster(release: str) -> None:
    """From 0.11 on the memory of a broker that was controller equals that of a broker that never was."""
    world = cluster({"t": ((2, 3),), "u": ((3, 2),)}, brokers=(1, 2, 3, 4), release=release)
    world.step(("freeze", 3))
    world.step(("create", "/admin/delete_topics/u", ""))
    settle(world, ("create", REASSIGN_PARTITIONS, encode_reassignment({TopicPartition("t", 0): (2, 4)}).decode()))
    replace_controller(world)
    settle(world, ("thaw", 1))
    resigned, other = world.processes[1].driver, world.processes[4].driver
    assert replace(resigned.controller, broker_id=4) == other.controller
    assert resigned.timers == {}
