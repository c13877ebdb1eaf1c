"""A learner's change is data: it swaps a function or a row for one world and never touches the module."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.cluster.world import World
from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.leader_election import STRATEGIES, Elected, ElectionInput
from kcontrol.core.effects import Handler
from kcontrol.core.model import LeaderAndIsr, PartitionState, ReplicaState, TopicPartition
from kcontrol.core.transitions import NO_CHANGES, Changes
from tests.core.support import cluster, of_kind, settle, stored


def last_one(candidates: ElectionInput) -> Elected | None:
    """The last live in-sync replica leads."""
    live_isr = tuple(b for b in candidates.isr if b in candidates.live_replicas)
    return Elected(live_isr[-1], live_isr) if live_isr else None


MINE = Changes(strategies={"offline": last_one})


def all_in_sync(ctx: ControllerContext, tp: TopicPartition, question: Any) -> LeaderAndIsr | str:
    """A new partition is led by its last replica, with all replicas in sync, dead or alive."""
    replicas = ctx.replicas(tp)
    return LeaderAndIsr(replicas[-1], replicas, 0, -1, ctx.controller_epoch)


def after_a_death(changes: Changes = NO_CHANGES) -> World:
    """Broker 2 rules; broker 1, who led t-0, has died."""
    world = cluster({"t": ((1, 2, 3),)}, brokers=(2, 1, 3), followers=False, changes=changes)
    settle(world, ("kill", 1))
    return world


def test_an_election_can_be_swapped_for_one_world() -> None:
    """The world with the learner's election elects by it, one beside it by Kafka's, and the table is what it was."""
    mine, kafkas = after_a_death(MINE), after_a_death()
    assert (stored(mine), stored(kafkas)) == ({"t-0": (3, (2, 3))}, {"t-0": (2, (2, 3))})
    assert STRATEGIES["offline"].rule is not last_one


def test_a_row_of_the_partition_table_can_be_swapped_for_one_world() -> None:
    """The learner's action decides the move of its row, in its world alone, and every other row stays."""
    changes = Changes({(PartitionState.NEW, PartitionState.ONLINE): all_in_sync})
    mine, kafkas = cluster({"t": ((1, 2, 3),)}, changes=changes), cluster({"t": ((1, 2, 3),)})
    assert (stored(mine)["t-0"][0], stored(kafkas)["t-0"][0]) == (3, 1)
    row = partition_machine.PARTITION_TRANSITIONS.find(partition_machine.NEW, partition_machine.ONLINE)
    assert row is not None
    assert row.action is partition_machine.first_leader
    settle(mine, ("kill", 3))
    assert stored(mine)["t-0"][0] == 1


def test_a_row_of_the_replica_table_can_be_swapped_for_one_world() -> None:
    """A learner's action for replicas that go offline, here none at all, leaves the dead in the ISR."""

    def nothing(ctx: Any, batch: Any, replicas: Any, target: Any) -> Handler:
        yield from replica_machine.memory_only(ctx, batch, replicas, target)

    row = (ReplicaState.ONLINE, ReplicaState.OFFLINE)
    mine = after_a_death(Changes({row: nothing}, {"offline": lambda c: Elected(2, c.isr)}))
    assert stored(mine)["t-0"] == (2, (1, 2, 3))
    assert stored(after_a_death())["t-0"] == (2, (2, 3))


def test_the_journal_names_the_strategy_that_decided() -> None:
    """A change that was elected records the strategy under which it was."""
    [changed] = [
        r for r in of_kind(after_a_death(MINE), "change") if r.fields["write"] == "set" and r.fields["machine"] == "partition"
    ]
    assert changed.fields["rule"] == "offline"


def test_a_fork_keeps_what_was_swapped() -> None:
    """A branch of a world with a learner's election elects by it too."""
    world = cluster({"t": ((1, 2, 3),)}, brokers=(2, 1, 3), followers=False, changes=MINE)
    branch = world.fork()
    settle(branch, ("kill", 1))
    assert stored(branch) == {"t-0": (3, (2, 3))}


@pytest.mark.parametrize("release", ["0.8.1", "1.0", "2.8"])
def test_a_row_that_changes_memory_alone_can_be_swapped(release: str) -> None:
    """An action of a learner for NonExistent -> New that refuses leaves every partition NonExistent, with the action's reason."""
    row = (PartitionState.NON_EXISTENT, PartitionState.NEW)
    changes = Changes({row: lambda ctx, tp, question: "not today"})
    mine = cluster({"t": ((1, 2, 3),)}, release=release, changes=changes)
    assert dict(mine.processes[1].driver.controller.partition_states) == {}
    assert of_kind(mine, "failed_change")[0].fields["reason"] == "not today"
