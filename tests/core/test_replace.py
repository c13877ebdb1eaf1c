"""A learner's change is data: it swaps a function or a row for one world and never touches the module."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.election import STRATEGIES, Candidates, Elected
from kcontrol.effects import Handler
from kcontrol.model import LeaderAndIsr, TopicPartition
from kcontrol.sim.world import World
from tests.core.support import cluster, of_kind, stored


def last_one(candidates: Candidates) -> Elected | None:
    """The last live in-sync replica leads."""
    live_isr = tuple(b for b in candidates.isr if b in candidates.live)
    return Elected(live_isr[-1], live_isr) if live_isr else None


def everybody(ctx: ControllerContext, tp: TopicPartition, question: Any) -> LeaderAndIsr | str:
    """A new partition is led by its last replica, with all replicas in sync, dead or alive."""
    replicas = ctx.replicas(tp)
    return LeaderAndIsr(replicas[-1], replicas, 0, -1, ctx.controller_epoch)


def after_a_death(replace: dict[str, Any]) -> World:
    """Broker 2 rules; broker 1, who led t-0, has died."""
    world = cluster({"t": ((1, 2, 3),)}, brokers=(2, 1, 3), followers=False, replace=replace)
    world.step(("kill", 1))
    world.run()
    return world


def test_an_election_can_be_swapped_for_one_world() -> None:
    """The world with the learner's election elects by it, one beside it by Kafka's, and the table is what it was."""
    mine, kafkas = after_a_death({"election.offline": last_one}), after_a_death({})
    assert (stored(mine), stored(kafkas)) == ({"t-0": (3, (2, 3))}, {"t-0": (2, (2, 3))})
    assert STRATEGIES["offline"].rule is not last_one


def test_a_row_of_the_partition_table_can_be_swapped_for_one_world() -> None:
    """The learner's action decides the move of its row, in its world alone, and every other row stays."""
    key = "partition.(NewPartition, OnlinePartition)"
    mine, kafkas = cluster({"t": ((1, 2, 3),)}, replace={key: everybody}), cluster({"t": ((1, 2, 3),)})
    assert (stored(mine)["t-0"][0], stored(kafkas)["t-0"][0]) == (3, 1)
    row = partition_machine.PARTITION_TRANSITIONS.find(partition_machine.NEW, partition_machine.ONLINE)
    assert row is not None
    assert row.action is partition_machine.initialize
    mine.step(("kill", 3))
    mine.run()
    assert stored(mine)["t-0"][0] == 1


def test_a_row_of_the_replica_table_can_be_swapped_for_one_world() -> None:
    """A learner's action for replicas that go offline, here none at all, leaves the dead in the ISR."""

    def nothing(ctx: Any, batch: Any, replicas: Any, target: Any) -> Handler:
        yield from replica_machine.mark(ctx, batch, replicas, target)

    mine = after_a_death({"replica.(OnlineReplica, OfflineReplica)": nothing, "election.offline": lambda c: Elected(2, c.isr)})
    assert stored(mine)["t-0"] == (2, (1, 2, 3))
    assert after_a_death({}).settings.replace == {}


def test_the_journal_names_the_strategy_that_decided() -> None:
    """A change that was elected records the strategy under which it was."""
    [changed] = [
        r
        for r in of_kind(after_a_death({"election.offline": last_one}), "change")
        if r.fields["write"] == "set" and r.fields["machine"] == "partition"
    ]
    assert changed.fields["rule"] == "offline"


def test_a_fork_keeps_what_was_swapped() -> None:
    """A branch of a world with a learner's election elects by it too."""
    world = cluster({"t": ((1, 2, 3),)}, brokers=(2, 1, 3), followers=False, replace={"election.offline": last_one})
    branch = world.fork()
    branch.step(("kill", 1))
    branch.run()
    assert stored(branch) == {"t-0": (3, (2, 3))}


@pytest.mark.parametrize("release", ["0.8.1", "1.0", "2.8"])
def test_a_row_that_changes_memory_alone_can_be_swapped(release: str) -> None:
    """An action of a learner for NonExistent -> New that refuses leaves every partition NonExistent, with the action's reason."""
    key = "partition.(NonExistentPartition, NewPartition)"
    mine = cluster({"t": ((1, 2, 3),)}, release=release, replace={key: lambda ctx, tp, question: "not today"})
    assert dict(mine.processes[1].driver.controller.partition_states) == {}
    assert of_kind(mine, "refuse")[0].fields["reason"] == "not today"
