"""A LeaderAndIsr answer that waits for a fetch from a frozen leader.

The other party: recordings of Kafka 0.9.0.1 and 1.0.2 (tests/golden/recordings/more/*/fetch-times-out.json).
"""

from __future__ import annotations

import pytest

from kcontrol.cluster.world import World
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.earlier.failover_steps import await_requests
from kcontrol.controller.handlers import design_of
from kcontrol.core.controller_rules import rules
from kcontrol.core.effects import AwaitInFlightRequests
from kcontrol.core.errors import UserError
from tests.core.support import cluster, of_kind, settle

RELEASES = ("0.8.0", "0.8.1", "0.9.0", "0.10.2", "0.11.0", "1.0")


def frozen_leader(release: str) -> World:
    """Return a cluster whose brokers 1 and 2 have LeaderAndIsr without their leader 3, which is frozen."""
    world = cluster({"t": ((3, 2, 1),)}, release=release)
    settle(world, ("freeze", 3), ("expire_session", 3))
    return world


@pytest.mark.parametrize("release", RELEASES)
def test_a_held_answer_goes_out_when_the_fetch_times_out(release: str) -> None:
    """The controller has broker 2's answer while the leader is still frozen, and the next request is delivered."""
    # Source: AbstractFetcherManager.shutdownIdleFetcherThreads, SimpleConsumer.sendRequest (0.8), ReplicaFetcherThread (0.9).
    world = frozen_leader(release)
    assert {held.broker for held in world.network.delayed_responses.values()} == {1, 2}
    before = len(world.journal.records)
    world.step(("time_out_fetch", 2))
    assert [r.fields["channel"] for r in of_kind(world, "response", before)] == ["1>2"]
    assert [r.fields["timed_out"] for r in of_kind(world, "send_delayed_response", before)] == [True]
    world.run()
    assert ({held.broker for held in world.network.delayed_responses.values()}, (1, 2) in world.network.channels) == ({1}, False)


@pytest.mark.parametrize("release", ["1.1", "2.8"])
def test_no_answer_waits_for_a_fetch_since_1_1(release: str) -> None:
    """A thread that stops fetching closes its connection first, so that there is no fetch to time out."""
    # Source: ReplicaFetcherThread.initiateShutdown (1.1).
    world = frozen_leader(release)
    assert world.network.delayed_responses == {}
    with pytest.raises(UserError, match="is not possible now"):
        world.step(("time_out_fetch", 2))


def test_a_fetch_that_has_come_back_does_not_time_out() -> None:
    """Once the leader has thawed the answer is given without a timeout."""
    world = frozen_leader("1.0")
    world.step(("thaw", 3))
    with pytest.raises(UserError, match="is not possible now"):
        world.step(("time_out_fetch", 2))
    before = len(world.journal.records)
    world.run()
    assert {r.fields["timed_out"] for r in of_kind(world, "send_delayed_response", before)} == {False}


@pytest.mark.parametrize("release", ["0.10.0", "0.10.2", "2.0", "2.4"])
def test_a_controller_waits_for_the_brokers_that_it_has_channels_to(release: str) -> None:
    """Before channels are closed, 0.10.2 to 2.1.0 wait for the requests to brokers that the controller knows, if it knows one."""
    # Source: ControllerChannelManager.removeExistingBroker (0.10.1.1, 0.10.2.2, 2.1.1), KAFKA-4959, KAFKA-7576.
    chosen = rules(release)
    ctx = ControllerContext(1, chosen, design_of(chosen), live_broker_epochs={2: 20, 3: 30})
    waits = [list(await_requests(ctx, brokers)) for brokers in ((3, 9), (9,), ())]
    assert waits == [[AwaitInFlightRequests((3,))] if release in ("0.10.2", "2.0") else [], [], []]
