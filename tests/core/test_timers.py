"""Timers of the controller and of the leaders: when they fall due."""

from __future__ import annotations

import pytest

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.broker.handlers import PROPAGATION_TIMER
from kcontrol.cluster.world import World
from tests.core.support import cluster, of_kind, until

TIMER = "auto-leader-rebalance"


def delays_ms(world: World, timer: str = TIMER) -> list[int]:
    """Return, for each time broker 1 armed a timer, the virtual milliseconds from the record to the moment it falls due."""
    armed = [r for r in of_kind(world, "set_timer") if r.id.node == 1 and r.fields["timer"] == timer]
    return [r.fields["fires_at_ms"] - r.at_ms for r in armed]


@pytest.mark.parametrize("release", ["0.8.1", "0.10.2", "1.1", "2.8", "3.9"])
def test_the_first_check_comes_five_seconds_after_the_failover(release: str) -> None:
    """The timer is armed at the failover with 5,000 ms, whatever the interval is."""
    # Source: KafkaController.onControllerFailover, `scheduleAutoLeaderRebalanceTask(delay = 5, unit = TimeUnit.SECONDS)` (2.8).
    config = BrokerConfig(auto_leader_rebalance_enable=True)
    assert delays_ms(cluster(release=release, config=config)) == [5_000]


@pytest.mark.parametrize("release", ["0.8.1", "0.10.2", "1.1", "2.8", "3.9"])
@pytest.mark.parametrize("interval_s", [300, 7])
def test_the_next_check_comes_after_the_interval(release: str, interval_s: int) -> None:
    """After a check the timer is armed again with `leader.imbalance.check.interval.seconds`."""
    # Source: KafkaController.processAutoPreferredReplicaLeaderElection (2.8).
    config = BrokerConfig(auto_leader_rebalance_enable=True, leader_imbalance_check_interval_seconds=interval_s)
    world = cluster(release=release, config=config)
    world.step(("fire_timer", 1, TIMER))
    until(world, lambda _: len(delays_ms(world)) > 1)
    assert delays_ms(world)[1:] == [1_000 * interval_s]


@pytest.mark.parametrize("release", ["0.9", "0.10.2", "1.1", "2.4"])
def test_a_leader_announces_its_isr_five_seconds_later(release: str) -> None:
    """After a leader has written its ISR, the timer of the announcement is armed with 5,000 ms."""
    # Source: ReplicaManager.IsrChangePropagationBlackOut (0.9.0 to 2.4).
    world = cluster(release=release)
    world.step(("shrink_isr", 1, "t-0", 3))
    until(world, lambda _: bool(delays_ms(world, PROPAGATION_TIMER)))
    assert delays_ms(world, PROPAGATION_TIMER) == [5_000]
