"""Hypothesis lets clients do what they like: what Kafka promises of a group holds all the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcontrol.group.events import AssignmentStored
from kcontrol.group.group_machine import STABLE
from kcontrol.group.model import Group
from tests.group.support import Run, broken, folded, reloaded

RELEASES = ("0.9", "0.10.1", "1.1", "2.2", "2.4", "2.8")
STEPS = st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999), st.integers(0, 999)), min_size=10, max_size=60)


def with_steps(run: Run, what: str) -> str:
    return f"{run.stage.release}: {what} after\n  " + "\n  ".join(run.said)


def played(release: str, steps: list[tuple[int, int, int]]) -> Run:
    """Take these steps, and look at the promises after each."""
    run = Run(release)
    for step in steps:
        before, length = dict(run.stage.context.groups), len(run.stage.journal)
        run.choose(*step)
        for what in broken(run, before, run.stage.journal.since(length)):
            raise AssertionError(with_steps(run, what))
    return run


@pytest.mark.parametrize("release", RELEASES)
@given(steps=STEPS)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_whatever_clients_do_a_group_keeps_its_promises(release: str, steps: list[tuple[int, int, int]]) -> None:
    """No answer is given twice, nothing throws, and no promise of `broken` is; the journal says all that there is."""
    run = played(release, steps)
    theirs, ours = folded(run)
    assert theirs == ours, with_steps(run, "the journal says something else")


def twice(run: Run) -> bool:
    """Whether some generation's assignment was written more than once."""
    written = [r.fields["completion_event"] for r in run.stage.journal.records if r.kind == "append"]
    stored = [then.generation for then in written if isinstance(then, AssignmentStored)]
    return len(stored) > len(set(stored))


def kept(group: Group) -> tuple[object, ...]:
    members = {m.member_id: (m.assignment, m.metadata(group.protocol), m.session_timeout_ms) for m in group.members.values()}
    return group.generation, group.leader, group.protocol, group.protocol_type, members


@pytest.mark.parametrize("release", RELEASES)
@given(steps=STEPS)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_the_next_coordinator_knows_what_this_one_has_promised(release: str, steps: list[tuple[int, int, int]]) -> None:
    """Of a Stable group the log has generation, leader, protocol and assignments; and the offsets, if no write has failed."""
    # Not so where a leader has sent SyncGroup twice while its first one was being written: the group has the first assignment and
    # the log the second, in Kafka too.
    run = played(release, steps)
    run.stage.release_held("NONE")
    ours, next_one = run.stage.context, reloaded(run).context
    for id, group in ours.groups.items():
        if group.state is STABLE and not any(member.awaiting_join for member in group.members.values()) and not twice(run):
            assert kept(next_one.groups[id]) == kept(group), with_steps(run, "the log has something else")
    if not run.has_failed:
        offsets = {id: {tp: stored.value for tp, stored in held.committed.items()} for id, held in ours.offsets.items()}
        found = {id: {tp: stored.value for tp, stored in held.committed.items()} for id, held in next_one.offsets.items()}
        assert found == {id: held for id, held in offsets.items() if held}, with_steps(run, "other offsets")


def test_random_runs_go_everywhere() -> None:
    """A few hundred steps reach every state, and generations well beyond the first."""
    import random

    chance, states, generation = random.Random(5), set(), 0
    for _ in range(30):
        run = Run("2.8")
        for _ in range(60):
            run.choose(*(chance.randrange(1_000) for _ in range(3)))
            for group in run.stage.context.groups.values():
                states.add(group.state.value)
                generation = max(generation, group.generation)
    assert states == {"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"} and generation > 4
