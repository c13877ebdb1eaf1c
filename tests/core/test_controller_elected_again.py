"""What a controller has forgotten when it begins a second term."""

from __future__ import annotations

import pytest

from kcontrol.cluster.world import World
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.handlers import design_of
from kcontrol.core.model import TopicPartition
from kcontrol.core.znodes import CONTROLLER, encode_controller
from tests.core.support import alone, cluster, settle

FIELDS = (
    "live_brokers", "live_broker_epochs", "shutting_down_broker_ids", "offline_dirs", "all_topics", "topic_ids", "assignments",
    "leadership", "partition_states", "replica_states", "topics_to_be_deleted", "topics_with_deletion_started",
    "topics_ineligible_for_deletion", "partitions_being_reassigned", "controller_epoch", "controller_epoch_zk_version",
    "offline_partition_count", "preferred_replica_imbalance_count",
)  # fmt: skip


def resigned(release: str) -> World:
    """A cluster whose controller, broker 1, has resigned because `/controller` names broker 9; it knew of all there can be."""
    world = cluster({"t": ((1, 2),), "u": ((3, 1),), "v": ((2, 3),)}, release=release)
    settle(world, ("kill", 3))
    settle(world, ("delete_topic", "v"))
    settle(world, ("set", CONTROLLER, encode_controller(9, 0).decode()))
    return world


@pytest.mark.parametrize("release", ["0.11.0", "1.0", "1.1", "2.4", "2.8", "3.9"])
def test_a_controller_that_resigns_forgets_the_cluster(release: str) -> None:
    """After a resignation the context holds nothing of brokers, topics, partitions, deletions and epochs."""
    # Source: KafkaController.resetControllerContext (0.11, 1.0), ControllerContext.resetContext (1.1, 2.8).
    context = resigned(release).processes[1].driver.controller
    empty = ControllerContext(1, context.rules, design_of(context.rules))
    assert {name: getattr(context, name) for name in FIELDS} == {name: getattr(empty, name) for name in FIELDS}


@pytest.mark.parametrize("release", ["0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.2"])
def test_a_second_term_begins_with_the_assignments_of_zookeeper(release: str) -> None:
    """A topic whose znode went while another broker was controller is not among the assignments of the next term."""
    # Up to 0.10.2 a resignation forgets no assignment. Source: KafkaController.initializeControllerContext (0.8.1, 0.10.2).
    world = cluster({"t": ((1, 2),), "u": ((2, 1),)}, release=release, brokers=(1, 2))
    world.step(("expire_session", 1))
    alone(world, 2, lambda w: w.processes[2].driver.controller.is_active)
    world.run()
    for path in [path for path in reversed(world.zk.tree()) if path.startswith("/brokers/topics/u")]:
        world.step(("delete", path))
    settle(world, ("kill", 2))
    context = world.processes[1].driver.controller
    assert (context.is_active, list(context.assignments)) == (True, [TopicPartition("t", 0)])
