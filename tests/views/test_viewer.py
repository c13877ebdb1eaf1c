"""The widget's Python side: what travels, what buttons do, what is shown where no widget is."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from kcontrol.cluster.actions import routine_actions
from kcontrol.core.errors import UserError
from kcontrol.journal.journal import Record, to_json
from kcontrol.views.record_rows import rows
from kcontrol.views.viewer import Viewer
from tests.views.support import NASTY, OfWorld, cluster, story


class Wire:
    """What a viewer sends to its browser: messages, and updates of traits by name."""

    def __init__(self, viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.messages: list[dict[str, Any]] = []
        self.updated: list[str] = []
        monkeypatch.setattr(viewer, "send", lambda content, buffers=None: self.messages.append(content))
        monkeypatch.setattr(viewer, "send_state", self.update)

    def update(self, key: str | Sequence[str] | None = None) -> None:
        self.updated += ["*"] if key is None else [key] if isinstance(key, str) else key


@pytest.fixture
def viewer() -> Viewer:
    """A viewer over three brokers, quiet."""
    return Viewer(OfWorld(cluster()), title="three")


def world_of(viewer: Viewer) -> Any:
    stepper = viewer._stepper
    assert isinstance(stepper, OfWorld)
    return stepper.world


def test_it_begins_at_the_end(viewer: Viewer) -> None:
    """A new viewer shows the last record, with what the run says of itself."""
    assert (viewer.at, viewer.count) == (len(viewer.records) - 1, len(viewer.records))
    assert (viewer.brokers, viewer.release, viewer.world) == ([1, 2, 3], "2.8", "simulated")
    assert (viewer.title, viewer.live) == ("three", True)


def test_a_step_sends_only_what_is_new(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a step one message holds the new records, and the trait with all of them does not travel."""
    known, wire = len(viewer.records), Wire(viewer, monkeypatch)
    viewer.click_step(("kill", 1))
    (message,) = wire.messages
    assert message["from"] == known
    assert message["append"] == rows(world_of(viewer).journal.records)[known:]
    assert "records" not in wire.updated
    assert {"count", "at", "actions", "busy"} <= set(wire.updated)


def test_a_long_run_travels_in_pieces(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    """No message holds more than so many records, and together they hold all, in order."""
    monkeypatch.setattr("kcontrol.views.viewer.BATCH_SIZE", 10)
    known, wire = len(viewer.records), Wire(viewer, monkeypatch)
    world = world_of(viewer)
    world.step(("kill", 1))
    world.run()
    viewer.refresh()
    assert [m["from"] for m in wire.messages] == list(range(known, len(viewer.records), 10))
    assert [r for m in wire.messages for r in m["append"]] == viewer.records[known:]


def test_what_a_browser_has_missed(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser that asks from a record on gets the rest."""
    wire = Wire(viewer, monkeypatch)
    viewer._on_message(None, {"do": "records", "from": viewer.count - 3}, None)
    assert wire.messages == [{"append": viewer.records[-3:], "from": viewer.count - 3}]


def test_another_world(viewer: Viewer) -> None:
    """When the journal is another one, as after a rewind, everything is taken anew."""
    viewer.asked = viewer.records[5]["id"]
    viewer.show(OfWorld(cluster((1, 2))))
    assert (viewer.brokers, viewer.asked, viewer.at) == ([1, 2], [], len(viewer.records) - 1)
    assert viewer.records == rows(viewer._source)
    stepper = viewer._stepper
    assert isinstance(stepper, OfWorld)
    stepper.world = cluster((1,))
    viewer.refresh()
    assert viewer.records == rows(stepper.records)


def test_what_can_happen_next(viewer: Viewer) -> None:
    """A session that a dead process has left behind ends by itself; that of a living broker is a fault."""
    sorts = {tuple(action): sort for action, _, sort in viewer.actions}
    assert sorts["expire_session", 1] == sorts["kill", 1] == "fault"
    viewer.click_step(("kill", 1))
    sorts = {tuple(action): sort for action, _, sort in viewer.actions}
    assert (sorts["expire_session", 1], sorts["expire_session", 2]) == ("routine", "fault")
    viewer.click_run()
    viewer.click_step(("start", 1))
    assert {tuple(action): sort for action, _, sort in viewer.actions}["expire_session", 1] == "fault"


@pytest.mark.parametrize("seed", range(3))
def test_what_goes_on_by_itself(seed: int) -> None:
    """In random runs the viewer calls routine what the world itself goes on with, no more and no less, in its order."""
    world = cluster(seed=seed, followers=False)
    world.step(("shrink_isr", 1, "orders-0", 2))
    world.run()
    world.step(("shrink_isr", 1, "orders-0", 3))
    world.run()
    viewer, choose = Viewer(OfWorld(world)), random.Random(seed)
    viewer.click_step(("terminate", 1))  # no other broker can lead orders-0, so it asks again after a while
    timers = set()
    for _ in range(120):
        mine = [action for action, _, sort in viewer.actions if sort == "routine"]
        assert mine == [to_json(action) for action in routine_actions(world)]
        timers |= {(action[2], sort) for action, _, sort in viewer.actions if action[0] == "fire_timer"}
        viewer.click_step(choose.choice(mine) if mine and choose.random() < 0.9 else choose.choice(world.actions()))
    assert {sort for _, sort in timers} == {"routine", "fault"}


def test_routine_is_what_run_does(viewer: Viewer) -> None:
    """Stepping what is next until nothing is routine ends where `run` ends."""
    viewer.click_step(("kill", 1))
    other = world_of(viewer).fork()
    while any(sort == "routine" for _, _, sort in viewer.actions):
        viewer.click_step()
    other.run()
    assert world_of(viewer).snapshot() == other.snapshot()


def test_the_browsers_click_is_the_methods_call(viewer: Viewer) -> None:
    """The messages of the buttons and the methods of the same names leave the same journal; each message is marked as done."""
    twin = Viewer(OfWorld(cluster()))
    twin.click_step(("kill", 2))
    twin.click_step()
    twin.click_step(("create_topic", "t", ((1, 3),)))
    twin.click_run()
    clicks: Sequence[dict[str, Any]] = [
        {"do": "step", "action": ["kill", 2], "n": 1},
        {"do": "step", "n": 2},
        {"do": "step", "action": ["create_topic", "t", [[1, 3]]], "n": 3},
        {"do": "run", "n": 4},
    ]
    for click in clicks:
        viewer._on_message(None, click, None)
        assert (viewer.done, viewer.busy, viewer.error) == (click["n"], False, "")
    assert viewer.records == twin.records


def test_errors_are_shown_and_raised(viewer: Viewer) -> None:
    """The widget shows the error of an act, which a method also raises; the next successful act removes it."""
    with pytest.raises(UserError, match="Broker 9 is not running"):
        viewer.click_step(("kill", 9))
    assert "Broker 9 is not running" in viewer.error
    viewer._on_message(None, {"do": "step", "action": ["no such thing"], "n": 1}, None)
    assert viewer.error.startswith("There is no action")
    assert (viewer.done, viewer.busy) == (1, False)
    viewer.click_step(("kill", 1))
    assert viewer.error == ""


def test_an_error_of_the_program_is_shown_too(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a step raises appears in the widget by name, what was recorded before it included."""

    def breaks() -> None:
        world_of(viewer).step(("kill", 3))
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(viewer._stepper, "run", breaks)
    known = viewer.count
    viewer._on_message(None, {"do": "run", "n": 1}, None)
    assert viewer.error == "ZeroDivisionError: by zero"
    assert viewer.count == known + 1


def test_quiet_and_held(viewer: Viewer) -> None:
    """A step where nothing goes on by itself, and any click while the viewer is held, say why nothing happens."""
    with pytest.raises(UserError, match="quiet"):
        viewer.click_step()
    viewer.held = "Answer the question first."
    viewer._on_message(None, {"do": "step", "action": ["kill", 1], "n": 1}, None)
    assert viewer.error == "Answer the question first."
    assert len(world_of(viewer).processes) == 3


def test_the_way_through_the_journal(viewer: Viewer) -> None:
    """Back and forth, from fault to fault, to a record by index or id."""
    viewer.click_step(("kill", 2))
    viewer.click_run()
    end = viewer.at
    viewer.previous_fault()
    assert viewer.records[viewer.at]["kind"] == "stop"
    viewer.previous_fault()
    assert viewer.records[viewer.at]["kind"] == "act"
    viewer.next_fault()
    assert viewer.records[viewer.at]["kind"] == "stop"
    viewer.forward()
    assert viewer.records[viewer.at]["kind"] == "close"
    viewer.back()
    assert viewer.records[viewer.at]["kind"] == "stop"
    viewer.details = True
    here = viewer.at
    viewer.back()
    assert viewer.at == here - 1
    viewer.next_fault()
    viewer.next_fault()
    assert viewer.at == end
    viewer.to(0)
    viewer.back()
    assert viewer.at == 0
    for name in (5, viewer.records[5]["id"], ".".join(map(str, viewer.records[5]["id"])), 5 - viewer.count):
        viewer.to(name)
        assert viewer.at == 5
    for name in (10**6, "9.9.9", "nonsense", [1]):
        with pytest.raises(UserError, match="There is no record"):
            viewer.to(name)


def test_without_details_steps_go_over_what_shows_nothing(viewer: Viewer) -> None:
    """From a fault forward, every stop is a record that changes or moves something, up to the last record."""
    viewer.click_step(("kill", 2))
    viewer.click_run()
    viewer.previous_fault()
    stops = []
    while viewer.at < viewer.count - 1:
        viewer.forward()
        stops.append(viewer.records[viewer.at]["weight"])
    assert len(stops) > 10
    assert set(stops[:-1]) == {1}


def test_why(viewer: Viewer) -> None:
    """The chain is returned as lines, nearest cause first, and shown; None closes it."""
    viewer.click_step(("kill", 1))
    viewer.click_run()
    elected = next(r for r in reversed(viewer.records) if r["kind"] == "change" and r["fields"]["rule"] == "offline")
    lines = viewer.why(elected["id"])
    assert viewer.asked == elected["id"]
    assert elected["say"] in lines[0]
    assert "Broker 1 is killed" in lines[-1]
    assert viewer.why(None) == []
    assert viewer.asked == []


def test_a_journal_alone() -> None:
    """A viewer over records goes through them, and says that there is nothing to step."""
    viewer = Viewer(records=story())
    assert (viewer.live, viewer.actions) == (False, [])
    with pytest.raises(UserError, match="cannot be stepped"):
        viewer.click_run()
    viewer.to(100)
    assert viewer.line().endswith(f"; record 101 of {len(story())}")


def test_no_records_at_all() -> None:
    """An empty journal is shown as such."""
    viewer = Viewer()
    viewer.forward()
    viewer.back()
    viewer.next_fault()
    assert viewer.at == 0
    assert viewer._repr_mimebundle_()[0]["text/plain"] == "0 brokers, no controller, no partitions; record 0 of 0"


def test_where_no_widget_is_shown(viewer: Viewer) -> None:
    """The bundle has the widget, a still picture and one line, all of the record that is shown."""
    data, _ = viewer._repr_mimebundle_()
    assert set(data) == {"application/vnd.jupyter.widget-view+json", "image/svg+xml", "text/plain"}
    assert (
        data["text/plain"]
        == f"3 brokers, broker 1 is controller (epoch 1), 3 partitions online; record {viewer.count} of {viewer.count}"
    )
    viewer.to(1)
    data, _ = viewer._repr_mimebundle_()
    assert data["text/plain"] == f"1 of 3 brokers, no controller, no partitions; record 2 of {viewer.count}"
    assert "1 of 3 brokers" in data["image/svg+xml"]


def test_every_trait_is_plain_json() -> None:
    """Nothing that travels needs more than JSON, session ids beyond JavaScript's numbers included."""
    import json

    viewer = Viewer(OfWorld(cluster(topic=NASTY)))
    state = viewer.get_state()
    assert json.loads(json.dumps(state["records"])) == viewer.records
    opened = Record(*next(r for r in story() if r.kind == "open")[:4], {"session": -(2**62) - 1})
    assert rows([opened])[0]["fields"]["session"] == "0xbfffffffffffffff"
