"""A failover that ends with an exception."""

from __future__ import annotations

import pytest

from kcontrol.core.znodes import CONTROLLER, encode_controller, topic_path
from tests.core.support import alone, cluster, of_kind


@pytest.mark.parametrize("release", ["2.4", "2.8", "3.9"])
@pytest.mark.parametrize(("is_replaced", "then"), [(True, (False, 2, True)), (False, (False, 0, False))])
def test_a_broker_whose_failover_fails_looks_who_is_controller(
    release: str, is_replaced: bool, then: tuple[bool, int, bool]
) -> None:
    """A failed broker resigns and deletes `/controller`, so that another may try, unless it names another broker by then."""
    # Source: KafkaController.triggerControllerMove, `if (!isActive) return` (2.4, 2.8).
    world = cluster(release=release)
    world.step(("set", topic_path("t"), '{"version":1,"partitions":7}'))
    world.step(("delete", CONTROLLER))
    if is_replaced:
        alone(world, 2, lambda w: w.processes[2].driver.controller.is_active)
        world.step(("set", CONTROLLER, encode_controller(9, 0).decode()))
    alone(world, 2, lambda w: bool(of_kind(w, "handler_error")))
    context = world.processes[2].driver.controller
    assert (context.is_active, context.controller_epoch, CONTROLLER in world.zk.tree()) == then
