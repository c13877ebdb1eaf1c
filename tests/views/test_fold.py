"""The state that the viewer's JavaScript makes of the rows' patches is the part of Python's fold that is shown."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.journal.fold import Fold, fold
from kcontrol.journal.journal import Record, RecordId, to_json
from kcontrol.journal.state_history import DEEP, History, _entries
from kcontrol.views import folded_state
from kcontrol.views.patches import is_shown
from kcontrol.views.picture_state import Seen
from kcontrol.views.record_rows import rows
from tests.core.logs import lost_by_unclean_election
from tests.tiers import slow_but
from tests.views.support import Ask, cluster, group_story, random_group_run, random_run, story

STATES = """
    const timeline = viewer.timelineOf({ get: () => given.rows });
    return given.at.map((index) => JSON.parse(JSON.stringify(timeline.at(index).state)));
"""


GROUPS = {"group", "consumer", "append", "read_log"}
"""The kinds of records that only a run with consumers has."""


CHECKPOINTS = """
    const states = given.at.map((index) => JSON.parse(JSON.stringify(timeline.at(index).state)));
    return [timeline.checkpoints.length, states];
"""


def shown(part: Any, path: tuple[str, ...] = ()) -> Any:
    """Return the part of a folded state that the viewer's panels draw."""
    if not isinstance(part, dict) or len(path) > 3:
        return part
    return {key: shown(value, (*path, key)) for key, value in part.items() if is_shown((*path, key))}


def folded(records: list[Record], at: list[int]) -> list[Any]:
    """The states after these records, as JSON has them, with what pictures show beside them."""
    fold, seen, wanted, found = Fold(), Seen(), set(at), {}
    for index, record in enumerate(records):
        fold.add(record)
        seen.add(record.to_json(), fold)
        if index in wanted:
            found[index] = json.loads(json.dumps(to_json(shown(fold.state) | seen.state)))
    return [found[index] for index in at]


@pytest.mark.parametrize("seed", slow_but(range(6), 0, 1))
def test_the_states_of_a_random_run(ask: Ask, seed: int) -> None:
    """After every third record of a run full of faults the browser holds what Python has folded."""
    records = list(random_run(seed).journal.records)
    at = list(range(seed % 3, len(records), 3))
    for mine, theirs, index in zip(folded(records, at), ask(STATES, {"rows": rows(records), "at": at}), at, strict=True):
        assert theirs == mine, f"after record {index}, {records[index]}"


REIGNS = "return viewer.timelineOf({ get: () => given.rows }).reigns;"


def killed_controllers(release: str) -> list[Record]:
    """Return the records of a run in which three controllers die one after the other, each with a later start."""
    world = cluster((1, 2, 3), release=release)
    for _ in range(3):
        named = folded_state.controller(fold(world.journal.records))
        assert named is not None
        for action in (("kill", named[0]), ("start", named[0])):
            world.step(action)
            world.run()
    return list(world.journal.records)


@pytest.mark.parametrize("release", ["0.8.0", "0.10.2", "2.8"])
def test_the_browser_has_the_controllers_that_python_finds(ask: Ask, release: str) -> None:
    """The browser's intervals of controllers are those in which `/controller` names a broker in the folded state."""
    records, state, expected, named = killed_controllers(release), Fold(), list[dict[str, Any]](), None
    for index, record in enumerate(records):
        state.add(record.to_json())
        before, found = named, folded_state.controller(state.state)
        named = found[0] if found else None
        if before not in {None, named}:
            expected[-1]["to"] = index
        if named not in {None, before}:
            expected.append({"broker": named, "from": index, "to": None})
    assert len(expected) == 4
    assert ask(REIGNS, {"rows": rows(records)}) == expected


@pytest.mark.parametrize("release", ["0.8.0", "0.10.2", "2.8"])
def test_the_controller_of_the_viewer_is_that_of_the_state(release: str) -> None:
    """After each record the viewer's state has the broker and the epoch that `folded_state.controller` returns."""
    state, seen, epochs = Fold(), Seen(), set()
    for record in [*killed_controllers(release), *random_run(1).journal.records]:
        if record.kind == "run":
            state, seen = Fold(), Seen()
        state.add(record.to_json())
        seen.add(record.to_json(), state)
        expected = folded_state.controller(state.state)
        assert seen.state["controller"] == (list(expected) if expected else None), record
        epochs |= {expected[1]} if expected else set()
    assert epochs >= {1, 2, 3, 4}


@pytest.mark.parametrize("then", ["thaw", "kill"])
def test_what_lies_unread_with_a_frozen_broker(ask: Ask, then: str) -> None:
    """A controller dies while a frozen broker has its requests: one stays, is read later, or goes with that broker, in both."""
    world = cluster((1, 2, 3))
    at = []
    world.step(("freeze", 3))
    world.step(("reassign", 1, {"orders-0": [2, 3]}))
    world.run()
    for action in (("kill", 1), ("start", 1), (then, 3)):
        world.step(action)
        at.append(len(world.journal) - 1)
    world.run()
    records = list(world.journal.records)
    at.append(len(records) - 1)
    mine = folded(records, at)
    assert (len(mine[0]["channels"]["1>3"]), mine[2]["channels"].get("1>3")) == (
        1,
        mine[1]["channels"]["1>3"] if then == "thaw" else None,
    )
    assert ask(STATES, {"rows": rows(records), "at": at}) == mine


def test_going_back_and_forth_is_the_same_as_going_on(ask: Ask) -> None:
    """A state does not depend on the way by which one came to it: jumps, steps back and checkpoints included."""
    records = list(story())
    last = len(records) - 1
    at = [last, 0, 63, 64, 65, 62, 128, 127, 500, 499, 498, last - 70, last, 64, 63]
    assert ask(STATES, {"rows": rows(records), "at": at}) == folded(records, at)


@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_from_a_checkpoint_as_from_the_beginning(data: st.DataObject) -> None:
    """At any place of any run, in any order and with dense checkpoints, a growing journal's history says what a fold says."""
    records = list(random_run(data.draw(st.integers(0, 3)), 120).journal.records)
    growing = records[: data.draw(st.integers(1, len(records)))]
    history = History(growing, checkpoint_interval=data.draw(st.integers(1, 40)))
    places = data.draw(st.lists(st.integers(0, len(records) - 1), min_size=1, max_size=8))
    said = []
    for at in places:
        growing += records[len(growing) : at + 1]
        said.append(history.at(at))
        if data.draw(st.booleans()):
            growing += records[len(growing) : len(growing) + 50]
            assert history.state == fold(growing)
    assert said == [fold(records[: at + 1]) for at in places]


def test_checkpoints_are_no_larger_than_the_journal() -> None:
    """Between two checkpoints lie as many records as the first of them has entries; without them all is folded anew."""
    records = list(random_run(5, 1500).journal.records)
    history = History(records, checkpoint_interval=10)
    assert history.state == fold(records)
    sizes = [sum(_entries(part, DEEP[name]) for name, part in c.state.items()) for c in history._checkpoints]
    gaps = [later - sooner for sooner, later in pairwise(history._places)]
    assert len(gaps) > 5
    assert all(gap >= max(10, size) for gap, size in zip(gaps, sizes, strict=False))


@pytest.mark.parametrize("seed", slow_but(range(3), 0))
def test_javascripts_checkpoints(ask: Ask, seed: int) -> None:
    """At random places, in random order, the state folded from a checkpoint is the state folded from the beginning."""
    records = list(random_run(seed, 1200).journal.records)
    choose = random.Random(seed)
    at = [choose.randrange(len(records)) for _ in range(25)]
    body = f"const timeline = viewer.timelineOf({{ get: () => given.rows }}); timeline.at({len(records) - 1}); {CHECKPOINTS}"
    count, states = ask(body, {"rows": rows(records), "at": at})
    assert count > 4
    assert states == folded(records, at)


def test_a_run_full_of_odd_names(ask: Ask) -> None:
    """Topics named as JavaScript's own properties, or in other letters, are names as any other."""
    world = cluster(topic="__proto__")
    for topic in ("constructor", "\uff21", "a-1-b", "hasOwnProperty"):
        world.step(("create_topic", topic, ((1, 2), (2, 3))))
        world.run()
    world.step(("kill", 1))
    world.run()
    records = list(world.journal.records)
    at = list(range(0, len(records), 7))
    assert ask(STATES, {"rows": rows(records), "at": at}) == folded(records, at)


def test_kinds_that_this_world_never_records(ask: Ask) -> None:
    """Timers, parked requests, repeated requests and lists of members are folded alike, though no run above may hold them."""
    made = [
        ("start", 0, {"broker": 1, "incarnation": 1}),
        ("set_timer", 1, {"timer": "x", "thread": "controller", "fires_at_ms": 9, "event": {"event": "E"}}),
        ("set_timer", 1, {"timer": "y", "thread": "controller", "fires_at_ms": 9, "event": {"event": "E"}}),
        ("cancel_timer", 1, {"timer": "x"}),
        ("fire_timer", 1, {"timer": "y"}),
        ("park", 1, {"correlation_id": "c", "key": "k"}),
        ("park", 1, {"correlation_id": "d", "key": "k"}),
        ("respond", 1, {"correlation_id": "c", "body": {}}),
        (
            "update",
            1,
            {"context": "broker", "field": "live", "container": "set", "clear": False, "remove": [], "put": [10, 9, 2]},
        ),
        ("update", 1, {"context": "broker", "field": "live", "container": "set", "clear": False, "remove": [9], "put": [1]}),
        ("update", 1, {"context": "broker", "field": "live", "container": "set", "clear": True, "remove": [], "put": None}),
        (
            "update",
            1,
            {"context": "controller", "field": "m", "container": "map", "clear": False, "remove": [], "put": {"1": 2, "3": 4}},
        ),
        ("update", 1, {"context": "controller", "field": "m", "container": "map", "clear": False, "remove": [3], "put": None}),
        ("send", 1, {"requests": {"leader_and_isr": {"values": [], "to": {"2": []}}, "stop_replica": {"to": {"2": {}}}}}),
        ("duplicate_request", 0, {"sender": 1, "receiver": 2, "api": "LeaderAndIsr"}),
        ("close_channels", 1, {"to": [2, 3]}),
    ]
    records = [Record(RecordId(who, 1, n), kind, None, n, fields) for n, (kind, who, fields) in enumerate(made)]
    at = list(range(len(records)))
    assert ask(STATES, {"rows": rows(records), "at": at}) == folded(records, at)


@pytest.mark.parametrize("seed", range(3, 7))
def test_what_is_in_flight(ask: Ask, seed: int) -> None:
    """After every step of a random run the channels with a request in flight are those of the network itself."""
    # Leaders write ISRs themselves here, and they are slow at it: meanwhile requests wait in their queues.
    choose, world = random.Random(seed), cluster(seed=seed, rule_changes={"alter_isr": False})
    at, flying = [], []
    for _ in range(300):
        possible = world.actions()
        hurried = [
            action
            for action in possible
            if action[0] in ("begin", "advance", "deliver_notification", "deliver_request") and action[-1] != "requests"
        ]
        shrinks = [action for action in possible if action[0] == "shrink_isr"]
        world.step(choose.choice((choose.random() < 0.9 and hurried) or (choose.random() < 0.5 and shrinks) or possible))
        at.append(len(world.journal.records) - 1)
        flying.append(sorted({f"{sender}>{receiver}" for sender, receiver in world.network.in_flight.values()}))
    body = """
        const timeline = viewer.timelineOf({ get: () => given.rows });
        return given.at.map((index) => Object.keys(timeline.at(index).state.taken).sort());
    """
    assert ask(body, {"rows": rows(world.journal.records), "at": at}) == flying
    assert max(map(len, flying)) > 0


def test_missing_records_are_noticed(ask: Ask) -> None:
    """Records that come twice are taken in once; records that leave a gap are refused."""
    body = """
        const timeline = viewer.timelineOf({ get: () => given.slice(0, 10) });
        const gap = timeline.append(given.slice(12), 12);
        const twice = timeline.append(given.slice(5, 20), 5);
        return [gap, twice, timeline.length, timeline.records.map((r) => r.id.join("."))];
    """
    records = rows(story()[:40])
    assert ask(body, records) == [False, True, 20, [".".join(map(str, r["id"])) for r in records[:20]]]


def test_a_run_that_loses_records(ask: Ask) -> None:
    """Logs, disks and what producers rely on are folded alike, a death, a lost tail and an unclean election included."""
    world = lost_by_unclean_election()
    world.step(("kill", 3))
    world.step(("lose_tail", 3, "t-0", 5))
    world.step(("produce", 2, "t-0", "<b>8</b>", "all"))
    world.run()
    records = list(world.journal.records)
    at = [*range(0, len(records), 5), len(records) - 1]
    assert ask(STATES, {"rows": rows(records), "at": at}) == folded(records, at)


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_a_run_with_consumers(ask: Ask, release: str) -> None:
    """A group's life is folded alike: members, consumers and the log of the offsets topic, from a coordinator to the next."""
    records = list(group_story(release).journal.records)
    at = [index for index, record in enumerate(records) if record.kind in GROUPS] + [len(records) - 1]
    assert {records[index].kind for index in at} >= GROUPS
    assert ask(STATES, {"rows": rows(records), "at": at}) == folded(records, at)


@pytest.mark.parametrize("release", ["0.9", "2.8"])
@pytest.mark.parametrize("seed", slow_but(range(2), 1))
def test_a_random_run_with_consumers(ask: Ask, release: str, seed: int) -> None:
    """After every fifth record of a random run with consumers the browser holds what Python has folded, in any order."""
    records = list(random_group_run(seed, release).journal.records)
    at = list(range(seed, len(records), 5))
    random.Random(seed).shuffle(at)
    assert ask(STATES, {"rows": rows(records), "at": at}) == folded(records, at)


def test_a_group_in_a_brokers_memory_stops_no_picture(ask: Ask) -> None:
    """Every record of a run in which a coordinator learns of a group can be shown; once an `update` of a group could not be."""
    world = World(Settings(brokers=(1,), consumers={"a": "g"}))
    for action in (("start", 1), ("create_topic", OFFSETS_TOPIC, ((1,),)), ("join", "a")):
        world.step(action)
        world.run()
    records = list(world.journal.records)
    assert any(record.kind == "update" and record.fields["context"] == "group" for record in records)
    body = """
        const model = { get: (name) => ({ records: given, brokers: [1] })[name] }, timeline = viewer.timelineOf(model);
        return given.map((_, index) => viewer.sceneAt(model, timeline, index, {}).partitions.length).at(-1);
    """
    assert ask(body, rows(records)) == 1


@pytest.mark.parametrize("seed", range(3))
def test_partitions_are_those_of_the_znodes(seed: int) -> None:
    """After each record the partitions of pictures are those that the folded znodes name: with faults, a deletion, odd texts."""
    world = cluster(faults=("kill", "start"), seed=seed)
    world.step(("create_topic", "t", ((1, 2), (2, 3))))
    choose, fold, seen = random.Random(seed), Fold(), Seen()
    for number in range(300):
        world.step(choose.choice(world.actions()))
        if number == 100:
            world.run()
            world.step(("delete_topic", "t"))
    state = "/brokers/topics/orders/partitions/0/state"
    odd = [
        ("set", state, "no JSON"),
        ("delete", state),
        ("set", "/brokers/topics/orders", '{"version":1,"partitions":{"7":[1]}}'),
    ]
    for action in (*odd, ("set", "/brokers/topics/orders", "[]")):
        world.step(action)
    for record in world.journal.records:
        fold.add(record)
        seen.add(record.to_json(), fold)
        wanted = {p.name: to_json(p._asdict()) for p in folded_state.partitions(fold.state)}
        assert seen.state["partitions"] == wanted


def test_a_record_that_contradicts_the_others_is_marked() -> None:
    """A row whose record cannot be folded says so and has no patch; the rows around it are as they would be."""
    broken = Record(RecordId(9, 1, 1), "begin", None, 0, {"thread": "missing", "event": "Startup"})
    whole = rows(story()[:51])
    found = rows([*story()[:50], broken, story()[50]])
    assert found[50]["broken"] == "KeyError: '9'"
    assert "patch" not in found[50]
    assert [*found[:50], found[51]] == whole


def test_rows_share_forms_and_texts() -> None:
    """Of the rows of a long run few have a form, and no long text is written twice."""
    found = rows(random_run(1, 1200).journal.records)
    patched = [row["patch"] for row in found if "patch" in row]
    texts = [text for row in found for text in row.get("texts", ()) if isinstance(text, str)]
    assert sum(isinstance(patch, list) for patch in patched) < len(patched) / 5
    assert len(set(texts)) == len(texts) > 10
