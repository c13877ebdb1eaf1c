"""The quick world of a search and the world itself: the same actions, the same states, however a run goes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import Action, World
from kcontrol.search.memo_driver import answer_key
from kcontrol.search.memo_world import MemoWorld, fork_for_search
from kcontrol.zookeeper.port import WriteResult
from tests.core.support import ALL_FAULTS, TOPICS, choose, cluster
from tests.tiers import slow_but

STEPS = 60
SETTINGS = {
    "requests travel": {},
    "requests arrive at once": {"instant_requests": True},
    "no pipeline": {"rule_changes": {"pipelined": False}},
    "no fence": {"rule_changes": {"fenced_writes": False}},
}


def seen(world: World) -> dict[str, Any]:
    """What a picture shows, without times, correlation ids and the numbers of records, which a quick world has of its own."""

    def bare(value: Any, name: str = "") -> Any:
        if name in ("at_ms", "timestamp_ms", "record", "correlation_id", "request", "parked"):
            return None
        if isinstance(value, dict):
            return {key: bare(item, key) for key, item in value.items()}
        return [bare(item) for item in value] if isinstance(value, list) else value

    state = world.snapshot()
    state["znodes"] = {path: node[1:] for path, node in state["znodes"].items()}  # their data has timestamps
    state["channels"] = {pair: [api for _, api in parcels] for pair, parcels in state["channels"].items()}
    return bare(state)  # type: ignore[no-any-return]


def same(quick: World, plain: World, done: list[Action]) -> None:
    """Both can go on in the same ways and look the same."""
    assert quick.actions() == plain.actions(), done
    assert seen(quick) == seen(plain), done


def test_registrations_at_two_zxids_have_two_outcomes() -> None:
    """The zxid of a registration, which is the broker epoch, is part of a response's key; the zxid of a set is not."""

    def keys(path: str) -> set[object]:
        return {answer_key([WriteResult(zxid, None, -1, (0,), (path,), (None,))]) for zxid in (70, 71)}

    assert (len(keys("/brokers/ids/2")), len(keys("/controller_epoch"))) == (2, 1)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("seed", range(6))
def test_a_quick_world_goes_the_way_of_the_world(seed: int, settings: str) -> None:
    """A random run with every fault on offer leads both to the same actions and the same pictures, step by step."""
    plain = cluster(faults=ALL_FAULTS, seed=seed, **SETTINGS[settings])
    quick, rng = fork_for_search(plain), random.Random(seed)
    assert isinstance(quick, MemoWorld)
    for _ in range(STEPS):
        action = choose(plain, rng)
        plain.step(action)
        quick = quick.fork()
        quick.step(action)
        same(quick, plain, plain.done)


@pytest.mark.parametrize("settings", slow_but(SETTINGS, "requests travel", "no fence"))
def test_what_is_remembered_is_what_would_have_happened(settings: str) -> None:
    """Twelve runs that share one memory, so that most of their steps are recalled, go the way of worlds that remember nothing."""
    origin = cluster(faults=ALL_FAULTS, **SETTINGS[settings])
    root = fork_for_search(origin)
    for seed in range(12):
        plain, quick, rng = origin.fork(), root.fork(), random.Random(seed // 2)
        for _ in range(25):
            action = choose(plain, rng)
            plain.step(action)
            quick.step(action)
            same(quick, plain, plain.done)


def test_a_quick_world_can_start_from_nothing() -> None:
    """From an empty ZooKeeper on, with all brokers still to start."""
    plain = World(Settings(topics=TOPICS, faults=ALL_FAULTS))
    quick, rng = fork_for_search(plain), random.Random(1)
    for _ in range(250):
        action = choose(plain, rng)
        plain.step(action)
        quick.step(action)
        same(quick, plain, plain.done)


@pytest.mark.parametrize("settings", slow_but(SETTINGS, "requests arrive at once", "no fence"))
def test_two_quick_worlds_are_one_state_when_the_worlds_are(settings: str) -> None:
    """Of all states that can be reached in three steps, quick fingerprints are equal just where the worlds' own are."""
    origin = cluster(faults=("kill", "expire_session", "delete_controller"), **SETTINGS[settings])
    frontier: list[tuple[World, World]] = [(fork_for_search(origin), origin.fork(keep_replay_logs=True))]
    prints = set()
    for _ in range(3):
        following = []
        for quick, plain in frontier:
            for action in plain.actions():
                one, other = quick.fork(), plain.fork(keep_replay_logs=True)
                one.step(action)
                other.step(action)
                prints.add((one.fingerprint(), other.fingerprint()))
                following.append((one, other))
        frontier = following
    assert len(prints) > 40
    assert len({quick for quick, _ in prints}) == len({plain for _, plain in prints}) == len(prints)
