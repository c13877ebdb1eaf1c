"""The journal is enough: folded, it gives the state of the world after every step of every run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.journal import journal_file
from kcontrol.journal.fold import fold
from kcontrol.journal.journal import to_line
from tests.core.snapshots import without_defaults
from tests.core.support import ALL_FAULTS, TOPICS, check_folds, cluster, walk

CHUNK = 25


def follow(world: World, seed: int, steps: int) -> None:
    """Random steps; after each of them what was journalled so far folds to what the world says of itself."""
    check_folds(world, walk(world, seed, steps))


def from_a_quiet_cluster(seed: int) -> World:
    """Sixty random steps from a quiet cluster of three brokers with two topics, every fault on offer."""
    world = cluster(faults=ALL_FAULTS, seed=seed)
    follow(world, seed, 60)
    return world


def from_an_empty_zookeeper(seed: int) -> World:
    """Two hundred random steps from nothing: brokers start side by side, topics come whenever they can."""
    world = World(Settings(topics=TOPICS, faults=ALL_FAULTS, seed=seed))
    follow(world, seed, 200)
    return world


@pytest.mark.parametrize("seed", range(25))
def test_the_journal_alone_draws_the_world(seed: int) -> None:
    """After every step of a random run from a quiet cluster, folding the journal gives the snapshot."""
    from_a_quiet_cluster(seed)


@pytest.mark.parametrize("seed", range(5))
def test_the_journal_alone_draws_the_world_from_the_first_step(seed: int) -> None:
    """After every step of a random run from an empty ZooKeeper, folding the journal gives the snapshot."""
    from_an_empty_zookeeper(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 1_900, CHUNK))
def test_nine_hundred_runs_from_a_quiet_cluster(first: int) -> None:
    """The same for nine hundred more runs of sixty steps."""
    for seed in range(first, first + CHUNK):
        from_a_quiet_cluster(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(2_000, 2_100, CHUNK))
def test_a_hundred_runs_from_an_empty_zookeeper(first: int) -> None:
    """The same for a hundred more runs of two hundred steps from an empty ZooKeeper."""
    for seed in range(first, first + CHUNK):
        from_an_empty_zookeeper(seed)


@pytest.mark.parametrize("seed", range(5))
def test_a_journal_from_a_file_draws_the_same_world(seed: int, tmp_path: Path) -> None:
    """Written as JSON and read again, a journal folds to the same state."""
    world = from_a_quiet_cluster(seed)
    journal_file.write(world.journal.records, tmp_path / "run.jsonl")
    assert without_defaults(fold(journal_file.read(tmp_path / "run.jsonl"))) == without_defaults(world.snapshot())


@pytest.mark.slow
def test_the_walks_go_through_everything_that_can_happen() -> None:
    """The random runs of this file take every kind of action that they could, so that they prove something."""
    taken: set[str] = set()
    for seed in range(25):
        taken |= {action[0] for action in from_a_quiet_cluster(seed).done}
    assert {
        *(
            "advance", "begin", "deliver_notification", "renew", "reconnect", "deliver_request", "send_to_controller", "fetch",
            "expire_session", "fire_timer", "start", "kill",
        ),
        *("freeze", "thaw", "shrink_isr", "drop_request", "duplicate_request", "create_topic", "delete"),
    } <= taken  # fmt: skip


def test_a_broker_may_be_called_zero() -> None:
    """A cluster with broker 0 folds like any other."""
    world = cluster({"t": ((0, 1),)}, brokers=(0, 1), faults=ALL_FAULTS)
    follow(world, 3, 60)
    assert "0" in cluster({"t": ((0, 1),)}, brokers=(0, 1)).snapshot()["nodes"]


def test_every_line_of_a_journal_stands_alone() -> None:
    """A record is one line of JSON, whatever it holds."""
    world = cluster(faults=ALL_FAULTS)
    world.step(("create", "/brokers/note", 'two\nlines, a "quote" and \x00'))
    lines = [to_line(record) for record in world.journal.records]
    assert {line.count(b"\n") for line in lines} == {1}
    assert without_defaults(fold(world.journal.records)) == without_defaults(world.snapshot())


def test_the_journal_knows_who_is_frozen() -> None:
    """A process that was stopped is frozen in the fold as in the snapshot, until it goes on."""
    world = cluster()
    for action, frozen in ((("freeze", 2), True), (("thaw", 2), False)):
        world.step(action)
        assert world.snapshot()["nodes"]["2"]["frozen"] is fold(world.journal.records)["nodes"]["2"]["frozen"] is frozen
