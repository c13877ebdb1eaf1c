"""The timer of the automatic rebalance: when it falls due."""

from __future__ import annotations

import pytest

from kcontrol.config import BrokerConfig
from kcontrol.sim.world import World
from tests.core.support import cluster, of_kind, until

TIMER = "auto-leader-rebalance"


def delays_ms(world: World) -> list[int]:
    """Return, for each time broker 1 armed the timer, the virtual milliseconds from the record to the moment it falls due."""
    armed = [r for r in of_kind(world, "arm") if r.id.node == 1 and r.fields["timer"] == TIMER]
    return [r.fields["fires_at_ms"] - r.at_ms for r in armed]


@pytest.mark.parametrize("release", ["0.8.1", "0.10.2", "1.1", "2.8", "3.9"])
def test_the_first_check_comes_five_seconds_after_the_failover(release: str) -> None:
    """The timer is armed at the failover with 5,000 ms, whatever the interval is.

    Source: KafkaController.onControllerFailover, `scheduleAutoLeaderRebalanceTask(delay = 5, unit = TimeUnit.SECONDS)` (2.8).
    """
    config = BrokerConfig(auto_leader_rebalance_enable=True)
    assert delays_ms(cluster(release=release, config=config)) == [5_000]


@pytest.mark.parametrize("release", ["0.8.1", "0.10.2", "1.1", "2.8", "3.9"])
@pytest.mark.parametrize("interval_s", [300, 7])
def test_the_next_check_comes_after_the_interval(release: str, interval_s: int) -> None:
    """After a check the timer is armed again with `leader.imbalance.check.interval.seconds`.

    Source: KafkaController.processAutoPreferredReplicaLeaderElection (2.8).
    """
    config = BrokerConfig(auto_leader_rebalance_enable=True, leader_imbalance_check_interval_seconds=interval_s)
    world = cluster(release=release, config=config)
    world.step(("fire", 1, TIMER))
    until(world, lambda _: len(delays_ms(world)) > 1)
    assert delays_ms(world)[1:] == [1_000 * interval_s]
