"""Which controller a leader asks for another ISR, and what becomes of its wish when that controller is frozen."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.cluster import actions
from kcontrol.cluster.world import World
from kcontrol.core.controller_rules import rules
from kcontrol.core.releases import PLAYABLE_RELEASES
from kcontrol.core.znodes import CONTROLLER
from tests.core.support import T0, alone, cluster, of_kind, settle, stored, until


def wish(release: str, *, frozen: bool = True, **rules: Any) -> World:
    """Broker 1 was controller, 2 is; leader 2 or 3 of t-0 has an unsent wish. `frozen`: 1's session ended, else it lives."""
    world = cluster({"t": ((3, 4),)}, brokers=(1, 2, 3, 4), release=release, rule_changes=rules)
    settle(world, ("freeze", 4), ("shrink_isr", 3, "t-0", 4))
    assert stored(world) == {"t-0": (3, (3,))}
    for action in (("freeze", 1), ("expire_session", 1)) if frozen else (("delete", CONTROLLER),):
        world.step(action)
    alone(world, 2, lambda w: w.processes[2].driver.controller.is_active)
    world.run()
    world.step(("thaw", 4))
    until(world, lambda w: bool(w.network.pending(3)))
    return world


@pytest.mark.parametrize("release", ["2.8", "3.9"])
def test_a_leader_waits_for_the_frozen_controller_that_it_knew(release: str) -> None:
    """AlterIsr goes to the next controller only when the connection to the frozen controller has timed out."""
    # Source: BrokerToControllerRequestThread.doWork (2.8); tests/golden/recordings/more/2.8.2/ask-frozen-long.json.
    world = wish(release)
    until(world, lambda w: next(actions.routine_actions(w))[0] == "time_out_request")
    assert list(actions.routine_actions(world)) == [("time_out_request", 3, 1)] == list(actions.routine_actions(world.fork()))
    before = world.now_ms
    world.step(("time_out_request", 3, 1))
    assert world.now_ms - before > world.settings.config.controller_socket_timeout_ms
    world.run()
    assert stored(world) == {"t-0": (3, (3, 4))}


def test_a_leader_asks_a_living_former_controller_first() -> None:
    """A controller that has lost `/controller` is asked, answers NOT_CONTROLLER, and the next question goes past it."""
    # Source: BrokerToControllerRequestThread.handleResponse (2.8).
    world = wish("2.8", frozen=False)
    before = len(world.journal)
    world.run()
    refused = of_kind(world, "request_refused", before)
    assert [(r.id.node, r.fields["error"]) for r in refused] == [(3, "NOT_CONTROLLER")]
    assert stored(world) == {"t-0": (3, (3, 4))}
    settle(world, ("shrink_isr", 3, "t-0", 4))
    assert of_kind(world, "request_refused", before) == refused


@pytest.mark.parametrize(
    ("release", "isr", "wishes", "asks"),
    [("2.8", (3,), 1, 1), ("3.1", (3, 4), 2, 2), ("3.2.1", (3, 4), 1, 2), ("3.9", (3, 4), 1, 2)],
)
def test_what_a_leader_makes_of_a_controller_without_a_session(
    release: str, isr: tuple[int, ...], wishes: int, asks: int
) -> None:
    """A thawed controller whose session has ended answers UNKNOWN_SERVER_ERROR: up to 3.0 the ISR stays pending for good."""
    # In 3.1 and 3.2.0 the next fetch renews the wish, from 3.2.1 on the leader asks again at once. Source: AlterIsrManager.submit
    # (2.8, 3.1), AlterPartitionManager.handleAlterPartitionResponse (3.9); recordings ask-frozen-controller of 2.8.2, 3.9.1.
    played = release if release in PLAYABLE_RELEASES else "2.8"
    world = wish(played, failed_alter_isr=rules(release).failed_alter_isr)
    before = len(world.journal)
    settle(world, ("thaw", 1))
    answers = [r.fields["body"].get("partitions") for r in of_kind(world, "respond", before) if r.id.node == 1]
    assert {T0: "UNKNOWN_SERVER_ERROR"} in answers
    assert stored(world) == {"t-0": (3, isr)}
    assert world.processes[3].driver.broker.hosted[T0].pending_isr == ((3, 4) if isr == (3,) else ())
    caught_up = [r for r in of_kind(world, "enqueue") if r.id.node == 3 and type(r.fields["event"]).__name__ == "ReplicaCaughtUp"]
    assert len(caught_up) == wishes
    assert len(of_kind(world, "submit")) - 1 == asks  # but for the smaller ISR
