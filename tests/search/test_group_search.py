"""Three members of a group join, sync and send heartbeats, and one dies: every order of their requests, to the last state.

Two states are one if everything that decides what can happen next is equal. Left out are the log, the correlation ids, the ends
of member ids, times, and generations as such: a consumer's generation counts from its group's. So the states are finitely many
although a group may rebalance for ever, and the search ends by itself.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

from kcontrol.cluster import actions
from kcontrol.cluster.consumer_state import COMPLETING, FROZEN, STABLE
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import Action, World, without_collection
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.group.events import InitialJoinTimedOut, PendingMemberTimedOut, SessionTimedOut
from kcontrol.search.invariants import ALWAYS, violation
from kcontrol.search.search import SearchResult
from tests.core.support import settle

STATES = {"0.9": 5_534, "2.8": 24_002}
"""The states that the search reaches, by release."""
AT_REST = {"0.9": 34, "2.8": 128}
"""Those among them that nothing but a death changes."""
UUID = re.compile(r"-[0-9a-f]{32}")


def small(release: str) -> World:
    """One broker with a topic of three partitions, and three consumers of one group that have sent nothing."""
    world = World(Settings(release, (1,), consumers=dict.fromkeys("abc", "g"), group_config={"initial_delay_ms": 0}))
    settle(world, ("start", 1))
    for topic, partitions in (("t", 3), (OFFSETS_TOPIC, 1)):
        settle(world, ("create_topic", topic, ((1,),) * partitions))
    return world


def requests(world: World) -> Iterator[Action]:
    """What a living consumer may send that waits for no response; first requests go by name, as names make no other run."""
    first = next((name for name, me in world.consumers.items() if not me.requests), None)
    for name, me in world.consumers.items():
        if me.asked is None and me.condition != FROZEN and (me.requests or name == first):
            if me.state == COMPLETING and not me.rejoin_needed:
                yield ("sync", name)
            elif me.state != STABLE or me.rejoin_needed:
                yield ("join", name)
            if me.generation > 0:
                yield ("heartbeat", name)


def following(world: World) -> Iterator[Action]:
    """Routine actions, requests, the end of a first wait; one consumer may fall silent, and then its sessions end."""
    yield from actions.routine_actions(world)
    yield from requests(world)
    silent = [name for name, me in world.consumers.items() if me.condition == FROZEN]
    yield from (("freeze_consumer", name) for name, me in world.consumers.items() if me.requests and not silent)
    for name, timer in sorted(world.processes[1].driver.timers.items()):
        ends = isinstance(timer.event, SessionTimedOut | PendingMemberTimedOut) and UUID.sub("", timer.event.member_id) in silent
        if ends or isinstance(timer.event, InitialJoinTimedOut):
            yield ("fire_timer", 1, name)


def mark(world: World) -> str:
    """All of a state that decides what can happen next, as text."""
    driver = world.processes[1].driver
    group = driver.group.groups.get("g") if driver.group else None
    generation = group.generation if group else 0
    said: list[Any] = [(name, view(me, generation)) for name, me in world.consumers.items()]
    if group:
        said += [(id, m.assignment, bool(m.awaiting_join), bool(m.awaiting_sync), m.is_new) for id, m in group.members.items()]
        said += [str(group.state), group.leader, group.protocol, group.is_delayed, group.has_newcomer]
        said += [group.pending_members, group.pending_sync]
    queued = [(name, [item.event.name for item in thread.queue.waiting]) for name, thread in driver.threads.items()]
    return UUID.sub("", repr([said, sorted(driver.timers), queued]))


def view(me: Any, generation: int) -> Any:
    """A consumer's view, with its generation counted from its group's and without its times and its past."""
    relative = me.generation - generation if me.generation >= 0 else None
    return me.without_times()._replace(generation=relative, requests=bool(me.requests), last_assignment=b"", last_generation=0)


def explored(release: str) -> tuple[SearchResult, list[World]]:
    """The result of a search through all orders, and the states that nothing but a death changes."""
    root = small(release)
    seen, frontier, at_rest = {mark(root)}, deque([(root, mark(root))]), list[World]()
    with without_collection():
        while frontier:
            world, before = frontier.popleft()
            after = {before}
            for action in list(following(world)):
                successor = world.fork(keep_replay_logs=True)
                successor.step(action)
                if found := violation(successor, ALWAYS):
                    return SearchResult(len(seen), root.settings, found, (), tuple(successor.done)), at_rest
                text = mark(successor)
                after |= set() if action[0] == "freeze_consumer" else {text}
                if text not in seen:
                    seen.add(text)
                    frontier.append((successor, text))
            if after == {before}:
                at_rest.append(world)
    return SearchResult(len(seen), root.settings), at_rest


@pytest.mark.slow
@pytest.mark.parametrize("release", STATES)
def test_no_order_of_three_members_and_one_death_breaks_a_promise(release: str) -> None:
    """Each state is reached, none breaks an invariant, and at rest all living consumers are members of one Stable generation."""
    # Source: the methods that the rows of INVARIANTS name (0.9, 2.8).
    result, at_rest = explored(release)
    assert result.violation is None, result.scenario()
    assert (result.states, len(at_rest)) == (STATES[release], AT_REST[release])
    for world in at_rest:
        group = world.processes[1].driver.group
        assert group
        living = {me.member_id: me for me in world.consumers.values() if me.condition != FROZEN}
        held = group.groups["g"]
        assert {(me.state, me.generation) for me in living.values()} == {(STABLE, held.generation)}
        assert str(held.state) == "Stable" and living.keys() <= held.members.keys()
