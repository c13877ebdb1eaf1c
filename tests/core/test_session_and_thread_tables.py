"""The tables of sessions and of the deletion thread: each pair of states is a move that Kafka makes, or is refused."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.cluster import sessions
from kcontrol.cluster.sessions import SESSION_TRANSITIONS, SessionState
from kcontrol.controller.earlier import topic_deletion_thread as deleting
from kcontrol.controller.earlier.topic_deletion_thread import DELETION_THREAD_TRANSITIONS, ThreadState
from kcontrol.core.effects import Enqueue, UpdateContext
from kcontrol.core.events import DeletionsResumed
from kcontrol.views import diagrams
from tests.core.support import cluster, settle

# What follows each state. Source: ZooKeeperClient.scala (2.8); ZkClient.processStateChanged (0.8 to 1.0).
SESSION = {"open": {"expired"}, "expired": {"expiring", "open"}, "expiring": {"open"}}
# Source: DeleteTopicsThread, resumeTopicDeletionThread, start and shutdown of TopicDeletionManager.scala (0.8.1 to 0.10.2).
THREAD = {"": {"signalled"}, "signalled": {"waiting", ""}, "waiting": {"signalled", ""}}


@pytest.mark.parametrize("target", SessionState)
@pytest.mark.parametrize("source", SessionState)
def test_a_pair_of_session_states_is_a_move_or_an_error(source: SessionState, target: SessionState) -> None:
    """A session goes to the states that ZooKeeper's clients take it to, and to no other."""
    world = cluster({}, brokers=(1,))
    process = world.processes[1]
    process.session = source
    process.driver.has_lost_session = source is not SessionState.OPEN
    if target in SESSION[source]:
        sessions.move(process, target)
        assert process.session is target
        assert process.driver.has_lost_session == (target is not SessionState.OPEN)
    else:
        with pytest.raises(ValueError, match="SESSION_TRANSITIONS has no row"):
            sessions.move(process, target)
        assert process.session is source


@pytest.mark.parametrize(("release", "passed"), [("2.8", ["expired", "expiring", "open"]), ("0.8.1", ["expired", "open"])])
def test_a_broker_takes_its_session_through_the_rows(release: str, passed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """From 1.1 on a session is expiring before the next one is open; before, ZkClient opens the next one at once."""
    seen: list[str] = []
    asked = sessions.move

    def noted(process: Any, target: SessionState) -> None:
        seen.append(target.value)
        asked(process, target)

    monkeypatch.setattr(sessions, "move", noted)
    world = cluster({}, brokers=(1, 2), release=release)
    settle(world, ("expire_session", 2))
    assert seen == passed


@pytest.mark.parametrize("target", ThreadState, ids=repr)
@pytest.mark.parametrize("source", ThreadState, ids=repr)
def test_a_pair_of_thread_states_is_a_move_or_an_error(source: ThreadState, target: ThreadState) -> None:
    """The thread goes where Kafka's goes; it gets a turn whenever it is signalled, and at no other move."""
    context: Any = type("Context", (), {"topic_deletion_thread": source.value})()
    if target.value not in THREAD[source.value]:
        with pytest.raises(ValueError, match="The deletion thread cannot go"):
            list(deleting.move_thread(context, target))
        return
    turn = [Enqueue(DeletionsResumed())] if target is ThreadState.SIGNALLED else []
    assert list(deleting.move_thread(context, target)) == [UpdateContext("topic_deletion_thread", target.value), *turn]


@pytest.mark.parametrize("table", [SESSION_TRANSITIONS, DELETION_THREAD_TRANSITIONS], ids=lambda table: table.name)
def test_a_small_table_is_drawn_with_a_line_for_each_row(table: Any) -> None:
    """The diagram of state machines draws these tables too: every row is an edge with its note."""
    outline = diagrams.machine(table).outline()
    assert all(row.note in outline for row in table)
