"""Delayed operations in the journal of a coordinator, and the purgatories and timing wheels that views make of them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from xml.etree import ElementTree

import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.journal.fold import fold
from kcontrol.journal.journal import Record, RecordId
from kcontrol.views import delayed_operations
from kcontrol.views.delayed_operations import purgatories
from tests.core.snapshots import without_defaults
from tests.group.purgatory import Operation, Purgatory

Opened = Callable[..., Lab]
STEPS = ("try_complete", "watch_operation", "check_and_complete")
RELEASES = ("0.9", "2.8")


def group(opened: Opened, release: str, **more: Any) -> Lab:
    """A lab of one broker with three consumers of group g and no wait for the first generation."""
    delay = {} if release == "0.9" else {"group.initial.rebalance.delay.ms": 0}
    names = {"a": "g", "b": "g", "c": "g"}
    settings = {"purgatory": True, "config": delay, "consumers": names} | more
    return opened(1, release, topics={"__consumer_offsets": [[1]], "t": [[1]]}, runs=None, **settings)


def join(lab: Lab, name: str) -> Lab:
    lab.group.join(name).run()
    if lab.state["consumers"][name]["error"] == "MEMBER_ID_REQUIRED":
        lab.group.join(name).run()
    return lab


def at_random(lab: Lab, seed: int, steps: int = 50) -> Lab:
    """Let consumers send requests and timers fire, in the order in which they are due."""
    chance = random.Random(seed)
    for _ in range(steps):
        timers = {name: timer for name, timer in lab.state["nodes"]["1"]["timers"].items() if timer["event"].get("group_id")}
        due = min(timers, key=lambda name: (timers[name]["at_ms"], name), default=None)
        idle = [name for name, consumer in lab.state["consumers"].items() if consumer["asked"] is None]
        if due and (not idle or chance.random() < 0.2):
            lab.fire_timer(1, due).run()
        else:
            getattr(lab.group, chance.choice(["join", "join", "sync", "heartbeat", "leave"]))(chance.choice(idle)).run()
    return lab


def steps(lab: Lab, operation: str) -> Iterator[tuple[Any, ...]]:
    for record in lab.records:
        if record.fields.get("operation") == operation:
            yield (record.kind, *(record.fields[name] for name in ("attempt", "is_complete") if name in record.fields))


@pytest.mark.parametrize("release", RELEASES)
def test_other_records_are_equal_with_and_without_the_steps(opened: Opened, release: str) -> None:
    """A run with the steps of delayed operations has the other records of a run without the steps, in the same order."""
    kinds = []
    for purgatory in (True, False):
        lab = at_random(group(opened, release, purgatory=purgatory), 5)
        kinds.append([(r.kind, r.at_ms, r.fields.get("timer"), r.fields.get("rule")) for r in lab.records if r.kind not in STEPS])
        assert any(r.kind in STEPS for r in lab.records) is purgatory
    assert kinds[0] == kinds[1]


def test_a_session_begins_with_three_steps_and_its_timer(opened: Opened) -> None:
    """A DelayedHeartbeat is tried, watched and tried again, and then its timer is set."""
    # Source: tryCompleteElseWatch of DelayedOperation.scala (0.9.0.1), called by completeAndScheduleNextHeartbeatExpiration.
    lab = join(group(opened, "0.9"), "a")
    assert list(steps(lab, "DelayedHeartbeat")) == [("try_complete", 1, False), ("watch_operation",), ("try_complete", 2, False)]
    (armed,) = [place for place, r in enumerate(lab.records) if r.kind == "set_timer" and r.fields["timer"].startswith("session")]
    assert [r.kind for r in lab.records[armed - 3 : armed]] == ["try_complete", "watch_operation", "try_complete"]


def test_the_session_of_a_parked_member_is_complete_at_the_first_try(opened: Opened) -> None:
    """Under 0.9 the SyncGroup that is parked completes the old DelayedHeartbeat and the new one; no timer is left."""
    # Source: doSyncGroup, AwaitingSync, and shouldKeepMemberAlive of GroupCoordinator.scala (0.9.0.1).
    lab = join(group(opened, "0.9"), "a")
    join(lab, "b")
    lab.group.join("a").run()
    before = len(lab.records)
    lab.group.sync("b").run()
    assert [r.fields["is_complete"] for r in lab.records[before:] if r.kind in STEPS] == [True, True]
    assert [r.kind for r in lab.records[before:] if r.kind in (*STEPS, "cancel_timer", "set_timer")] == [
        "check_and_complete", "cancel_timer", "try_complete",
    ]  # fmt: skip


def test_each_request_to_join_checks_the_watch_list(opened: Opened) -> None:
    """A JoinGroup in PreparingRebalance checks the DelayedJoin, which the last JoinGroup completes."""
    # Source: doJoinGroup, joinPurgatory.checkAndComplete, of GroupCoordinator.scala (0.9.0.1).
    lab = join(join(join(group(opened, "0.9"), "a"), "b"), "c")
    before = len(lab.records)
    lab.group.join("a").run()
    checks = [r for r in lab.records if r.kind == "check_and_complete" and r.fields["operation"] == "DelayedJoin"]
    assert [(r.fields["key"], r.fields["is_complete"], lab.records.index(r) >= before) for r in checks] == [
        ("GroupKey(g)", False, False), ("GroupKey(g)", False, False), ("GroupKey(g)", True, True),
    ]  # fmt: skip


def played(records: list[Record]) -> dict[str, tuple[int, int]]:
    """The counters (watched, delayed) of both purgatories after the records, by the structure that Kafka's cases hold."""
    ready = set[str]()
    built = {name: Purgatory() for name in delayed_operations.PURGATORIES}
    waiting: dict[str, tuple[Purgatory, Operation, str]] = {}
    for r in records:
        f = r.fields
        if r.kind == "try_complete" and f["attempt"] == 1:
            label = str(r.id)
            made = Operation(label, partial(ready.__contains__, label), lambda: None, lambda: None)
            waiting[f["timer"]] = built[f["purgatory"]], made, f["key"]
            if f["is_complete"]:
                ready.add(label)
                assert made.is_ready() and built[f["purgatory"]].try_complete(made)
        elif r.kind == "set_timer" and f["timer"] in waiting:
            purgatory, made, key = waiting[f["timer"]]
            assert not purgatory.try_complete_else_watch(made, f["fires_at_ms"], [key])
        elif r.kind == "check_and_complete":
            purgatory, made, key = waiting[f["timer"]]
            ready |= {made.name} if f["is_complete"] else set()
            assert purgatory.check_and_complete(key) == f["is_complete"]
        elif r.kind == "fire_timer" and f["timer"] in waiting:
            assert waiting[f["timer"]][0].force_complete(waiting[f["timer"]][1])
    return {name: (purgatory.watched, len(purgatory.timer)) for name, purgatory in built.items()}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("seed", range(3))
def test_the_counters_are_those_of_kafkas_structure(opened: Opened, release: str, seed: int) -> None:
    """Watched operations and those with a timer are, in a random run, those of the purgatory that the conformance cases check."""
    # Each check completes as many operations as its record says, and no operation completes twice. Source: the cases `purgatory`
    # of tests/conformance/group.yaml.
    lab = at_random(group(opened, release), seed)
    found = [purgatory for _, purgatory in purgatories(lab.records)]
    shown = {p.name: (p.watched, sum(o.deadline_ms is not None and not o.completed_by for o in p.operations)) for p in found}
    assert played(list(lab.records)) == shown
    assert sum(watched for watched, _ in shown.values()) > 0


@pytest.mark.parametrize("release", RELEASES)
def test_the_steps_change_no_state(opened: Opened, release: str) -> None:
    """The fold of a journal with the steps equals the state of the world."""
    lab = at_random(group(opened, release), 11)
    assert without_defaults(fold(lab.records)) == without_defaults(lab._world.snapshot())


def records(*rows: tuple[str, int, dict[str, Any]]) -> list[Record]:
    return [Record(RecordId(1, 1, place), kind, None, at_ms, fields) for place, (kind, at_ms, fields) in enumerate(rows)]


def test_a_task_falls_from_ring_to_ring() -> None:
    """A task with expiry 450 is in the ring of 400 ms, from 400 ms on in that of 20 ms, from 440 ms on in that of 1 ms."""
    # Source: the case `cascade` of tests/conformance/group.yaml; TimingWheel.scala (0.9, 2.8).
    named = {"operation": "DelayedHeartbeat", "purgatory": "Heartbeat", "key": "MemberKey(g,m)", "timer": "session g m"}
    run = records(
        ("start", 0, {"broker": 1}),
        ("try_complete", 0, named | {"attempt": 1, "is_complete": False}),
        ("watch_operation", 0, named),
        ("try_complete", 0, named | {"attempt": 2, "is_complete": False}),
        ("set_timer", 0, {"timer": "session g m", "fires_at_ms": 450, "event": None}),
        ("end", 450, {"thread": "coordinator"}),
    )
    ((_, found),) = purgatories(run)
    (operation,) = found.operations
    assert operation.places == [(0, 400, 1), (400, 20, 2), (440, 1, 10)]
    assert (operation.left_wheel_ms, found.delayed, found.watched) == (450, 0, 1)


def test_completed_entries_are_purged() -> None:
    """More than 1,000 operations that are complete and still watched are removed from the watch lists."""
    # Source: advanceClock of ExpiredOperationReaper in DelayedOperation.scala (0.9, 2.8).
    rows: list[tuple[str, int, dict[str, Any]]] = [("start", 0, {"broker": 1})]
    sizes = {}
    for number in range(1_002):
        timer = f"session g m{number}"
        named = {"operation": "DelayedHeartbeat", "purgatory": "Heartbeat", "key": f"MemberKey(g,m{number})", "timer": timer}
        rows += [
            ("try_complete", at := number * 20, named | {"attempt": 1, "is_complete": False}),
            ("watch_operation", at, named),
            ("set_timer", at, {"timer": timer, "fires_at_ms": at + 10, "event": None}),
            ("fire_timer", at + 10, {"timer": timer}),
            ("end", at + 11, {"thread": "coordinator"}),
        ]
        if number >= 999:
            ((_, found),) = purgatories(records(*rows))
            sizes[number + 1] = found.watched
    assert sizes == {1_000: 1_000, 1_001: 1, 1_002: 2}  # what has just expired is completed after the purge, by another thread


def test_the_picture_names_every_operation(opened: Opened) -> None:
    """The text and the SVG of a purgatory name each waiting operation with a letter, and the SVG is well formed."""
    lab = at_random(group(opened, "2.8"), 4)
    picture = lab.purgatory()
    shown = {o.begun: o for _, p in purgatories(lab.records) if p.name == "Heartbeat" for o in p.operations if not o.completed_by}
    letters = {o.begun: letter for o, letter in picture.letters.items()}
    lines = {line.split()[0]: line for line in picture.lines()[2:]}
    assert len(shown) > 1 and all(f" {o.key}: " in lines[letters[begun]] for begun, o in shown.items())
    root = ElementTree.fromstring(picture.svg())
    slots = " ".join(node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}title"))
    assert {letters[begun] for begun in shown} <= set(re.findall(r"\b[A-Z]\b", slots))
    assert root.attrib["aria-label"] == " ".join(picture.lines())
    assert "prefers-color-scheme:dark" in picture.svg() and "DelayedHeartbeat" in picture.svg()


def test_the_title_of_the_picture_has_two_short_lines(opened: Opened) -> None:
    """The lines above the picture have at most 40 characters, so a narrow column shows them whole."""
    picture = at_random(group(opened, "2.8"), 4).purgatory()
    above = re.findall(r'<text [^>]*font-size="14"[^>]*>([^<]*)</text>', picture.svg())
    assert " ".join(above) == picture.title and max(map(len, above)) <= 40


def test_a_slot_with_many_tasks_has_their_number(opened: Opened) -> None:
    """A slot with up to three tasks shows their letters, a slot with more shows one letter and the number of the others."""
    names = {f"c{number}": "g" for number in range(5)}
    lab = group(opened, "0.9", consumers=names)
    for number in range(5):
        join(lab, f"c{number}")
    lab.run(alive=True)
    svg = lab.purgatory().svg()
    shown = re.findall(r'<path [^>]*class="full">.*?</path><text [^>]*>([^<]*)</text>', svg)
    waits = [letter for o, letter in lab.purgatory().letters.items() if not o.completed_by]
    assert f"{waits[0]}+{len(waits) - 1}" in shown and len(waits) == 5


def test_hostile_names_are_escaped(opened: Opened) -> None:
    """A group id with markup is text in the picture."""
    lab = opened(1, "0.9", topics={"__consumer_offsets": [[1]]}, runs=None, purgatory=True, consumers={"a": "<script>x</script>"})
    picture = join(lab, "a").purgatory()
    assert "<script>" not in picture.svg() and "<script>" in picture.lines()[-1]


def test_the_table_has_a_row_for_each_operation(opened: Opened) -> None:
    """`delayed_operations` has the steps, rings, deadline and completion of each operation, in the order of the journal."""
    lab = join(group(opened, "0.9"), "a")
    lab.fire_timer(1, next(name for name in lab.state["nodes"]["1"]["timers"] if name.startswith("session"))).run()
    found = lab.tables.delayed_operations()
    assert list(found.operation) == ["DelayedJoin", "DelayedHeartbeat", "DelayedJoin"]
    assert list(found.steps) == ["try", "try, watch, try again, timer", "try"]
    assert list(found.completed_by) == ["first try", "its timer", "first try"]
    assert found.rings.iloc[1] == "8 s > 400 ms > 20 ms > 1 ms" and found.fires_ms.iloc[1] == found.completed_ms.iloc[1]


def test_a_run_without_the_steps_says_how_to_get_them(opened: Opened) -> None:
    """Without the records, or for another purgatory, one sentence says what to do or which purgatories there are."""
    with pytest.raises(UserError, match=r"open the lab with consumers and with purgatory=True\.$"):
        group(opened, "0.9", purgatory=False).tables.delayed_operations()
    lab = join(group(opened, "0.9"), "a")
    with pytest.raises(UserError, match=r"^There is no purgatory 'Fetch'; there are Heartbeat of broker 1 and Rebalance of br"):
        lab.purgatory("Fetch")
    with pytest.raises(UserError, match=r"^There is no purgatory 'Heartbeat' of broker 7; there are"):
        lab.purgatory(broker=7)
