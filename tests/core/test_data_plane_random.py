"""Random runs of worlds whose brokers keep logs: the journal is enough, forks are equal, and what logs promise holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcontrol.cluster.world import World
from kcontrol.journal import journal_file
from kcontrol.journal.fold import fold
from kcontrol.search.invariants import violation
from kcontrol.search.search import search
from tests.core.durability import DURABLE, Property, high_watermark_within, replicas_agree
from tests.core.logs import UNCLEAN, fetch, high_watermark_not_fetched, lost_by_unclean_election, produce, walk, with_logs
from tests.core.snapshots import without_defaults
from tests.core.support import check_folds, journal_bytes, scenario
from tests.tiers import slow_but

FAULTS = ("kill", "start", "shrink_isr", "produce", "drop_request", "duplicate_request", "expire_session")
STEPS = 400


def start(**settings: Any) -> World:
    """A quiet cluster of four with one partition on three of them, and faults on offer."""
    return with_logs(faults=FAULTS, **settings)


CLEAN, ANY, OLD = start(), start(config=UNCLEAN), start(release="0.8.1")


def follow(world: World, seed: int, steps: int = STEPS) -> None:
    """Random steps; after each of them the journal folds to what the world says of itself."""
    check_folds(world, walk(world, seed, steps))


def keeps(world: World, seed: int, properties: tuple[Property, ...], steps: int = STEPS) -> str | None:
    """Random steps until a property is broken: which one, and how to come there; None if all hold to the end."""
    for _ in walk(world, seed, steps):
        if found := violation(world, properties):
            return scenario(world, found)
    return None


@pytest.mark.parametrize("seed", slow_but(range(12), *range(4)))
def test_the_journal_alone_draws_the_logs(seed: int) -> None:
    """After every step of a random run, elections unclean ones included, folding the journal gives the snapshot."""
    follow(ANY.fork(), seed)


@pytest.mark.parametrize("seed", slow_but(range(4), 0, 1))
def test_the_journal_alone_draws_the_logs_of_0_8_1(seed: int) -> None:
    """The same under the rules and with the threads of 0.8.1."""
    follow(OLD.fork(), seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 1_100, 20))
def test_a_hundred_more_runs(first: int) -> None:
    """The same for a hundred more runs."""
    for seed in range(first, first + 20):
        follow((OLD if seed % 4 == 0 else ANY).fork(), seed)


def test_a_journal_from_a_file_draws_the_same_logs(tmp_path: Path) -> None:
    """Written as JSON and read again, a journal with losses folds to the same state."""
    world = lost_by_unclean_election()
    journal_file.write(world.journal.records, tmp_path / "run.jsonl")
    assert without_defaults(fold(journal_file.read(tmp_path / "run.jsonl"))) == without_defaults(world.snapshot())


def test_the_walks_go_through_what_logs_go_through() -> None:
    """The random runs of this file append, commit, acknowledge, cut, lose and change roles, so that they prove something."""
    kinds: set[str] = set()
    for seed in (2, 3, 5, 9, 30, 34):  # seeds of which some lose what was acknowledged
        world = ANY.fork()
        for _ in walk(world, seed, STEPS):
            pass
        kinds |= {record.kind for record in world.journal.records}
    assert {
        *(
            "log_append", "log_truncate", "log_role", "high_watermark", "follower_end", "checkpoint", "acknowledged",
            "record_lost",
        ),
        *("submit", "controller_response", "drop_request", "duplicate_request", "session_lost"),
    } <= kinds  # fmt: skip


# ---------------------------------------------------------------- what logs promise


@pytest.mark.parametrize(
    "seed", [*range(20), 5_110]
)  # the last one fails if a leader notes a follower whose log parts from its own
def test_what_was_committed_survives_clean_elections(seed: int) -> None:
    """Under 2.8's rules no random run without unclean elections loses or hides what acks=all acknowledged, and replicas agree."""
    # Source: KIP-101, KIP-279, KAFKA-7128.
    assert keeps(CLEAN.fork(), seed, DURABLE) is None


@pytest.mark.slow
@pytest.mark.parametrize("first", range(5_000, 5_250, 25))
def test_what_was_committed_survives_250_more_runs(first: int) -> None:
    """The same for 250 more runs."""
    for seed in range(first, first + 25):
        assert keeps(CLEAN.fork(), seed, DURABLE) is None


@pytest.mark.parametrize("seed", range(8))
def test_replicas_agree_even_after_unclean_elections(seed: int) -> None:
    """Records may be lost then, but every in-sync replica has the leader's records."""
    assert keeps(ANY.fork(), seed, (replicas_agree, high_watermark_within)) is None


@pytest.mark.parametrize("rule", ["high_watermark", "leader_epoch", "common_epoch"])
def test_the_shortest_run_that_loses_a_commit(rule: str) -> None:
    """0.10's rule loses a committed record if the leader dies before its follower has fetched the new high watermark."""
    # No order of events of up to twelve steps with one death does so under the later rules. Source: KIP-101, scenario 1.
    world = high_watermark_not_fetched(rule, faults=("kill",), instant_requests=True)
    found = search(world, depth=12, faults=1, properties=DURABLE)
    if rule == "high_watermark":
        assert found.violation == "t-0: broker 3 leads without record 1 (b), acknowledged by 1"
        assert (found.actions[:2], {action[0] for action in found.actions[2:]}) == (
            (("kill", 2), ("expire_session", 2)),
            {"deliver_notification", "begin", "advance"},
        )
    else:
        assert (found.violation, found.actions) == (None, ())


# ---------------------------------------------------------------- forks and fingerprints


@pytest.mark.parametrize("exact", [False, True], ids=["steps again", "given the answers"])
@pytest.mark.parametrize("seed", range(4))
def test_a_fork_has_the_same_logs_and_the_same_future(seed: int, exact: bool) -> None:
    """It has the fingerprint, the journal and the actions of the original, and the same steps give equal journals on both."""
    world = ANY.fork(keep_replay_logs=exact)
    for _ in walk(world, seed, 60):
        pass
    branch = world.fork()
    assert (branch.fingerprint(), branch.actions()) == (world.fingerprint(), world.actions())
    for action in walk(branch, seed, 40):
        world.step(action)
        assert branch.snapshot() == world.snapshot()
    assert journal_bytes(branch.journal.records) == journal_bytes(world.journal.records)
    assert branch.fingerprint() == world.fingerprint()


def test_what_a_fork_appends_is_not_in_the_original() -> None:
    """Records, disks and promises of a fork are its own."""
    world = lost_by_unclean_election()
    world.step(("kill", 3))
    before = (world.fingerprint(), world.snapshot())
    branch = world.fork()
    branch.step(("lose_tail", 3, "t-0", 1))
    produce(branch, "8", leader=2, acks="1")
    assert (world.fingerprint(), world.snapshot()) == before
    assert branch.snapshot() != world.snapshot()


def test_different_logs_have_different_fingerprints() -> None:
    """One more record, known offset, high watermark or checkpoint is another state; the order of fetches is not."""
    world = start()
    prints = [world.fingerprint()]
    produce(world, "a")
    prints.append(world.fingerprint())
    for _ in range(3):
        fetch(world, 2, 3)
        prints.append(world.fingerprint())
    world.step(("checkpoint", 1))
    prints.append(world.fingerprint())
    assert len(set(prints)) == len(prints)
    orders = set()
    for order in ((2, 3), (3, 2)):
        other = start()
        produce(other, "a")
        fetch(other, *order)
        orders.add(other.fingerprint())
    assert len(orders) == 1


def test_a_fingerprint_forgets_how_a_producer_was_numbered() -> None:
    """Two worlds in which a producer waits for the same record are one state, whatever happened before its first record."""
    prints = set()
    for detours in (0, 2):
        world = start()
        for _ in range(detours):
            produce(world, "refused", leader=4)
        produce(world, "a")
        prints.add(world.fingerprint())
    assert len(prints) == 1
