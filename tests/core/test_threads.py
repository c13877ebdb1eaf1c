"""Threads that share a lock, timers, and requests that wait: what a driver does with handlers that no broker has yet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kcontrol.cluster.network import Network
from kcontrol.cluster.process import Process
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.snapshot import snapshot
from kcontrol.core import effects as fx
from kcontrol.core.events import ListPartitionReassignments, Reelect
from kcontrol.journal.fold import fold
from tests.core.snapshots import without_defaults
from tests.core.support import T0, Bench, RunStory

LOCKED = {"listener": "controller-lock", "scheduler": "controller-lock"}


def note(bench: Bench, name: str, *steps: Any) -> Any:
    """A story that creates a znode per step under its name; a step that is an effect is asked for as it is."""

    def story(ctx: Any) -> fx.Handler:
        for number, step in enumerate(steps):
            yield step if step is not None else fx.Transaction((fx.Op("create", f"/{name}-{number}"),))

    story.__name__ = name
    return story


def both(*first: Any) -> Bench:
    """Two threads under one lock, each with a story of three round trips waiting; the first one may have other steps."""
    bench = Bench(LOCKED)
    bench.enqueue(note(bench, "a", *(first or (None, None, None))), "listener")
    bench.enqueue(note(bench, "b", None, None, None), "scheduler")
    return bench


def able(bench: Bench) -> set[tuple[str, str]]:
    """What the two threads could do next."""
    threads = bench.driver.threads.values()
    return {("begin", t.name) for t in threads if bench.driver.can_begin(t)} | {
        ("advance", t.name) for t in threads if bench.driver.can_advance(t)
    }


def test_who_gets_the_lock_first_is_a_choice() -> None:
    """While no thread holds the lock either thread can begin."""
    assert able(both()) == {("begin", "listener"), ("begin", "scheduler")}


def test_only_one_thread_runs_under_the_lock() -> None:
    """From its beginning to its end a handler keeps the other thread out, which can begin as soon as it has ended."""
    bench = both()
    bench.driver.begin("listener")
    for _ in range(3):
        assert able(bench) == {("advance", "listener")}
        bench.driver.advance("listener")
    assert able(bench) == {("begin", "scheduler")}


def test_threads_without_a_common_lock_run_side_by_side() -> None:
    """Without a lock both handlers can be under way at once."""
    bench = Bench({"listener": None, "scheduler": None})
    for name, thread in (("a", "listener"), ("b", "scheduler")):
        bench.enqueue(note(bench, name, None, None), thread)
        bench.driver.begin(thread)
    assert able(bench) == {("advance", "listener"), ("advance", "scheduler")}


def test_release_lets_the_other_thread_in() -> None:
    """A handler that lets go of the lock stays suspended, and then it is a choice again who goes on."""
    bench = both(None, fx.YieldLock(), None)
    bench.driver.begin("listener")
    bench.driver.advance("listener")
    assert able(bench) == {("advance", "listener"), ("begin", "scheduler")}
    bench.driver.begin("scheduler")
    assert able(bench) == {("advance", "scheduler")}


def test_a_handler_goes_on_when_it_has_the_lock_again() -> None:
    """After `YieldLock` the handler takes the lock with its next step, keeps it, and the other thread has to wait again."""
    bench = both(None, fx.YieldLock(), None)
    bench.driver.begin("listener")
    bench.driver.advance("listener")
    bench.go("scheduler")
    assert able(bench) == {("advance", "listener")}
    bench.enqueue(note(bench, "c", None), "scheduler")
    bench.driver.advance("listener")
    assert able(bench) == {("advance", "listener")}
    bench.driver.advance("listener")
    assert able(bench) == {("begin", "scheduler")}
    assert [call[1][0][0][1] for call in bench.calls] == ["/a-0", "/b-0", "/b-1", "/b-2", "/a-2"]


def test_a_release_takes_no_round_trip_and_is_journalled() -> None:
    """Letting go of the lock asks nothing of ZooKeeper; the journal says when it happened."""
    bench = both(fx.YieldLock())
    bench.driver.begin("listener")
    assert ([r.fields["thread"] for r in bench.records("yield_lock")], bench.calls) == (["listener"], [])


def test_a_handler_that_fails_gives_the_lock_back() -> None:
    """A lock is free again when the handler that held it has ended with an error."""
    bench = both(fx.UpdateContext("no_such_field", 1))
    bench.driver.begin("listener")
    assert able(bench) == {("begin", "scheduler")}
    assert len(bench.records("handler_error")) == 1


# ---------------------------------------------------------------- logs


def test_append_takes_no_round_trip() -> None:
    """Records for the offsets topic go through the outbox at once, and the handler goes on; their result is an event."""
    bench = Bench()
    answers: list[Any] = []

    def appends(ctx: Any) -> fx.Handler:
        answers.append((yield fx.Append(T0, ((b"key", b"value"), (b"gone", None)))))

    bench.enqueue(appends)
    bench.driver.begin("controller")
    assert (bench.post.sent, answers) == ([("append", T0, ((b"key", b"value"), (b"gone", None)))], [None])
    [record] = bench.records("append")
    assert record.to_json().fields == {
        "partition": "t-0",
        "records": [["key", "value"], ["gone", None]],
        "completion_event": None,
    }


# ---------------------------------------------------------------- requests that wait


def agrees(bench: Bench) -> bool:
    """Whether the journal of a bench folds to what a snapshot of it would show."""
    processes = {1: Process(bench.driver, "127.0.0.1", 9093)}
    world: Any = SimpleNamespace(
        zk=bench.zookeeper, network=Network(), owners={bench.driver.client.session_id: 1}, processes=processes,
        settings=Settings(),
    )  # fmt: skip
    return bool(without_defaults(fold(bench.journal.records)) == without_defaults(snapshot(world)))


def test_a_parked_request_waits_until_it_is_answered() -> None:
    """A parked request is in the snapshot and in the fold, with the reason of its wait, until a response is sent."""
    bench = Bench()
    bench.do(fx.Park("7-1", "t-0 reaches offset 5"), fx.Park("7-2", "t-0 reaches offset 9"))
    assert bench.driver.parked == {"7-1": "t-0 reaches offset 5", "7-2": "t-0 reaches offset 9"}
    assert fold(bench.journal.records)["nodes"]["1"]["parked"] == bench.driver.parked
    bench.do(fx.Respond("7-1", {"error": "NONE"}))
    assert (bench.driver.parked, bench.post.sent) == ({"7-2": "t-0 reaches offset 9"}, [("respond", "7-1", {"error": "NONE"})])
    assert agrees(bench)


def test_a_request_that_was_not_parked_can_be_answered() -> None:
    """`Respond` needs no `Park` before it."""
    bench = Bench()
    bench.do(fx.Respond("7-1", {"error": "NONE"}))
    assert bench.post.sent == [("respond", "7-1", {"error": "NONE"})]


# ---------------------------------------------------------------- timers


def test_a_timer_that_is_set_again_as_periodic_or_cancelled_is_not_routine() -> None:
    """`routine_timers` has the timer only while it is set and is not periodic."""
    bench = Bench()
    found = []
    for effect in (
        fx.SetTimer("tick", 50, None),
        fx.SetTimer("tick", 50, None, periodic=True),
        fx.SetTimer("tick", 50, None),
        fx.CancelTimer("tick"),
    ):
        bench.do(effect)
        found.append(bench.driver.routine_timers.copy())
    assert found == [{"tick"}, set(), {"tick"}, set()]


def test_a_timer_queues_its_event_when_it_fires() -> None:
    """An armed timer stands in the snapshot with its time; firing it queues its event for the thread that armed it."""
    bench = Bench()
    bench.now_ms = 100
    bench.do(fx.SetTimer("tick", 50, RunStory("asks")))
    assert (list(bench.driver.timers), bench.driver.timers["tick"].at_ms) == (["tick"], 150)
    assert agrees(bench)
    bench.driver.fire("tick")
    assert [item.event for item in bench.driver.threads["controller"].queue.waiting] == [RunStory("asks")]
    assert agrees(bench)
    kinds = [record.kind for record in bench.journal.why(bench.records("enqueue")[-1].id)]
    assert kinds[:3] == ["enqueue", "fire_timer", "set_timer"]


def test_arming_again_replaces_and_cancelling_stops() -> None:
    """A timer that is armed anew has the new time only; cancelled, it is gone, and cancelling none is no error."""
    bench = Bench()
    bench.do(fx.SetTimer("tick", 50, RunStory("asks")), fx.SetTimer("tick", 80, RunStory("asks")))
    assert [timer.at_ms for timer in bench.driver.timers.values()] == [80]
    assert agrees(bench)
    bench.do(fx.CancelTimer("tick"), fx.CancelTimer("tick"), fx.CancelTimer("never armed"))
    assert (bench.driver.timers, len(bench.records("cancel_timer"))) == ({}, 1)
    assert agrees(bench)
    with pytest.raises(KeyError):
        bench.driver.fire("tick")


# ---------------------------------------------------------------- queues


def test_clear_and_put_preempts_what_waits_and_not_what_runs() -> None:
    """Events that wait are taken out in order and answered; the one that is being handled goes on to its end."""
    # Source: ControllerEventManager.clearAndPut (2.8).
    bench = Bench()
    bench.enqueue(note(bench, "running", fx.Exists(("/a",)), None))
    bench.driver.begin("controller")
    bench.driver.enqueue(ListPartitionReassignments("7-1"), None, "controller")
    bench.enqueue(note(bench, "second", None))
    bench.driver.clear("controller", None)
    bench.enqueue(note(bench, "last", None))
    assert [r.fields["event"].name for r in bench.records("preempt")] == ["ListPartitionReassignments", "RunStory"]
    assert [(answer[1], answer[2]["error"]) for answer in bench.post.sent] == [("7-1", "NOT_CONTROLLER")]
    assert agrees(bench)
    while bench.driver.threads["controller"].handler:
        bench.driver.advance("controller")
    bench.go()
    assert [call[1][0][0][1] for call in bench.calls if call[0] == "write"] == ["/running-1", "/last-0"]


def test_a_handler_can_clear_a_queue_and_put_an_event_there() -> None:
    """`Enqueue` puts an event behind what waits, or with `clear` in place of it, in the queue of the thread that it names."""
    bench = Bench({"controller": None, "other": None})
    for name in ("x", "y"):
        bench.enqueue(note(bench, name), "other")
    bench.do(fx.Enqueue(RunStory("z"), "other"))
    other = bench.driver.threads["other"].queue
    assert [item.event.story for item in other.waiting] == ["x", "y", "z"]
    bench.do(fx.Enqueue(RunStory("w"), "other", clear=True))
    assert [item.event.story for item in other.waiting] == ["w"]
    assert agrees(bench)


def test_an_event_gets_its_time_when_it_is_queued() -> None:
    """An event with a time field gets the time at which it was put into the queue."""
    bench = Bench()
    bench.now_ms = 77
    bench.driver.enqueue(Reelect(), None)
    assert bench.driver.threads["controller"].queue.waiting[0].event == Reelect(77)
