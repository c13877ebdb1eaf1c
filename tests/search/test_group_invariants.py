"""Whatever members, timers and brokers do, and in whatever order, a group keeps the promises of INVARIANTS."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcontrol.cluster.actions import ACTIONS
from kcontrol.cluster.world import Action, World
from kcontrol.group.events import OffsetsStored
from kcontrol.search.invariants import INVARIANTS
from tests.group.test_coordinators_in_a_cluster import T, stable
from tests.search.test_random_runs import UNHURRIED, run

RELEASES = ("0.9", "0.10.2", "1.1", "2.8")
FAULTS = ("join", "sync", "heartbeat", "leave", "kill", "start", "freeze", "thaw")
CHOICES = st.lists(st.integers(0, 99_999), min_size=20, max_size=60)


def a_group(release: str) -> World:
    """A Stable group of two members at the first of two brokers; members, timers and brokers may do anything next."""
    world = stable(release)
    object.__setattr__(world.settings, "faults", FAULTS)
    return world


def commits_and_losses(world: World, number: int) -> list[Action]:
    """Commits of both consumers, lost records of the offsets topic and, for a quarter of the numbers, a failing disk."""
    brokers = world.settings.brokers
    acts: list[Action] = [("commit", name, f"t-{number % 3}", number) for name in "ab"] * 2
    acts += [("lose_tail", n, str(T), number % 7) for n in brokers]
    acts += [("fail_log_dir", n, str(T)) for n in brokers if number % 4 == 0]
    return [(kind, *rest) for kind, *rest in acts if ACTIONS[kind].possible(world, *rest)]


GROUPS = {release: a_group(release) for release in RELEASES}


@settings(UNHURRIED, max_examples=40)
@given(st.sampled_from(RELEASES), CHOICES)
def test_a_group_keeps_its_promises_in_any_order(release: str, choices: list[int]) -> None:
    """No run with joins, silence, commits, timers, coordinator moves, deaths, lost records or failing disks breaks a row."""
    # Source: the methods that the rows of INVARIANTS name (0.9, 2.8).
    run(GROUPS[release].fork(), choices, commits_and_losses)


@pytest.mark.slow
@settings(UNHURRIED, max_examples=1_000)
@given(st.sampled_from(RELEASES), CHOICES)
def test_a_group_keeps_its_promises_in_many_orders(release: str, choices: list[int]) -> None:
    """A thousand such runs break no invariant."""
    run(GROUPS[release].fork(), choices, commits_and_losses)


def test_the_runs_ask_each_row_of_groups() -> None:
    """Two hundred runs make records of each kind by which a row of groups is asked, and the events and losses that matter."""
    import random

    rows = [row for row in INVARIANTS if row.since == "0.9"]
    wanted = {"SessionTimedOut", "PartitionElected", "lose_tail", "fail_log_dir", "log_truncate"}
    wanted |= {"OffsetsStored NONE", "OffsetsStored REQUEST_TIMED_OUT"}
    wanted |= {kind for row in rows for kind in row.after}
    seen: set[str] = set()
    for seed in range(200):
        world, chance = GROUPS["2.8"].fork(), random.Random(seed)
        before = len(world.journal)
        run(world, [chance.randrange(100_000) for _ in range(60)], commits_and_losses)
        records = world.journal.since(before)
        seen |= {r.kind for r in records} | {r.fields["event"] for r in records if r.kind == "begin"}
        seen |= {r.fields["action"][0] for r in records if r.kind == "act"}
        stored = (r.fields["event"] for r in records if r.kind == "enqueue")
        seen |= {f"OffsetsStored {event.error}" for event in stored if isinstance(event, OffsetsStored)}
        if wanted <= seen:
            break
    assert wanted <= seen
