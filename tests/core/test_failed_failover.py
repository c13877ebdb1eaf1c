"""A failover that ends with an exception."""

from __future__ import annotations

import pytest

from kcontrol.core.znodes import CONTROLLER, encode_controller, topic_path
from tests.core.support import alone, cluster, of_kind


@pytest.mark.parametrize("release", ["2.4", "2.8", "3.9"])
def test_a_broker_whose_failover_fails_looks_who_is_controller(release: str) -> None:
    """Where `/controller` names another broker by then, the failed broker neither resigns nor deletes the znode."""
    # Source: KafkaController.triggerControllerMove, `if (!isActive) return` (2.4, 2.8).
    world = cluster(release=release)
    world.step(("set", topic_path("t"), '{"version":1,"partitions":7}'))
    world.step(("delete", CONTROLLER))
    alone(world, 2, lambda w: w.processes[2].driver.controller.is_active)
    world.step(("set", CONTROLLER, encode_controller(9, 0).decode()))
    alone(world, 2, lambda w: bool(of_kind(w, "handler_error")))
    context = world.processes[2].driver.controller
    assert (context.is_active, context.controller_epoch, CONTROLLER in world.zk.tree()) == (False, 2, True)


@pytest.mark.parametrize("release", ["2.4", "2.8", "3.9"])
def test_a_broker_whose_failover_fails_gives_the_office_up(release: str) -> None:
    """Where `/controller` still names the failed broker, it resigns and deletes the znode, so that another may try."""
    # Source: KafkaController.triggerControllerMove (2.4, 2.8).
    world = cluster(release=release)
    world.step(("set", topic_path("t"), '{"version":1,"partitions":7}'))
    world.step(("delete", CONTROLLER))
    alone(world, 2, lambda w: bool(of_kind(w, "handler_error")))
    context = world.processes[2].driver.controller
    assert (context.is_active, context.controller_epoch, CONTROLLER in world.zk.tree()) == (False, 0, False)
