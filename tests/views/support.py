"""Runs to look at, and a way to ask the viewer's JavaScript what it makes of them."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from kcontrol.cluster.consumer_clients import REQUESTED
from kcontrol.cluster.run_settings import FAULTS, Settings
from kcontrol.cluster.world import World
from kcontrol.core.errors import UserError
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.install.doctor import find_chromium
from kcontrol.journal.journal import Record
from kcontrol.views import bundle

NASTY = "<img src=x onerror=alert(1)>"

# Chromium runs as root in containers, and sends no request of its own.
CHROMIUM = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


class OfWorld:
    """A world as a viewer steps it."""

    def __init__(self, world: World) -> None:
        self.world = world

    @property
    def records(self) -> Sequence[Record]:
        return self.world.journal.records

    def actions(self) -> Sequence[Any]:
        return self.world.actions()

    def step(self, action: Any = None) -> None:
        following = next((one for one in self.world.actions() if one.routine), None) if action is None else action
        if following is None:
            raise UserError("The cluster is quiet.")
        self.world.step(following)

    def run(self) -> None:
        self.world.run()


def cluster(brokers: Sequence[int] = (1, 2, 3), topic: str = "orders", faults: Sequence[str] = FAULTS, **settings: Any) -> World:
    """Brokers start in the order given; a topic with a partition for each is created; everything is quiet."""
    world = World(Settings(brokers=tuple(sorted(brokers)), faults=tuple(faults), **settings))
    for broker in brokers:
        world.step(("start", broker))
        world.run()
    spread = tuple(tuple(brokers[i:]) + tuple(brokers[:i]) for i in range(len(brokers)))
    world.step(("create_topic", topic, spread))
    world.run()
    return world


@cache
def story() -> tuple[Record, ...]:
    """A leader dies, then the controller; both come back."""
    world = cluster((3, 2, 1))
    for action in (("kill", 2), ("kill", 3), ("start", 2), ("start", 3)):
        world.step(action)
        world.run()
    return tuple(world.journal.records)


def _from_outside(world: World) -> Iterator[tuple[Any, ...]]:
    for n, process in sorted(world.processes.items()):
        yield ("thaw" if process.frozen else "freeze", n)
        if not process.frozen:
            yield ("terminate", n)
    if "/controller" in world.zk.tree():
        yield from (("set", "/controller", text) for text in ("nonsense", "7", '{"brokerid":2}'))
    if len(world.processes) < len(world.settings.brokers):
        yield ("start", next(n for n in world.settings.brokers if n not in world.processes))


def random_run(seed: int, steps: int = 250, topic: str = "t") -> World:
    """A cluster after random actions of `actions()`, with some freezes, thaws, stops, starts and a forged `/controller`."""
    choose, world = random.Random(seed), cluster(topic=topic, seed=seed)
    for _ in range(steps):
        rare = list(_from_outside(world))
        world.step(choose.choice(rare) if choose.random() < 0.04 else choose.choice(world.actions() or rare))
    return world


# ---------------------------------------------------------------- consumer groups


def with_consumers(release: str, **settings: Any) -> World:
    """Return three brokers with a topic, the offsets topic led by broker 1, and two consumers that have not joined yet."""
    groups = {"consumers": {"anna": "billing", "bert": "billing"}, "group_config": {"initial_delay_ms": 0}}
    world = cluster(release=release, **groups, **settings)
    world.step(("create_topic", OFFSETS_TOPIC, ((1, 2, 3),)))
    world.run()
    return world


def _request(world: World, consumer: str, request: str) -> None:
    """Send a consumer's request, and send it again where the coordinator asks for a member id first (KIP-394)."""
    for _ in range(2):
        world.step((request, consumer))
        world.run()
        if world.consumers[consumer].error != "MEMBER_ID_REQUIRED":
            return


def group_story(release: str) -> World:
    """Play a group's life: it becomes Stable, commits, loses its coordinator, and both members leave."""
    world = with_consumers(release)
    _request(world, "anna", "join")
    if "join billing" in world.processes[1].driver.timers:
        world.step(("fire_timer", 1, "join billing"))
        world.run()
    _request(world, "bert", "join")
    if world.consumers["bert"].asked:
        _request(world, "anna", "join")
    for consumer in ("anna", "bert"):
        _request(world, consumer, "sync")
    world.step(("commit", "anna", "orders-0", 7))
    world.run()
    world.step(("kill", 1))
    world.run()
    for consumer in ("bert", "anna"):
        _request(world, consumer, "leave")
    return world


def random_group_run(seed: int, release: str, steps: int = 250) -> World:
    """Play random steps in which brokers die and consumers ask whatever they can."""
    choose, world = random.Random(seed), with_consumers(release, seed=seed, faults=("kill", "start", *REQUESTED))
    for _ in range(steps):
        offered = world.actions()
        asked = [action for action in offered if action[0] in REQUESTED]
        world.step(choose.choice((choose.random() < 0.3 and asked) or offered))
    return world


# ---------------------------------------------------------------- JavaScript

Ask = Callable[[str, Any], Any]


IN_NODE = """
const viewer = { MACHINES, timelineOf, sceneAt, differences, placeBeside, squares, strips, unsaid }, chunks = [];
const ask = async (given) => { BODY };
for await (const chunk of process.stdin) chunks.push(chunk);
process.stdout.write(JSON.stringify(await ask(JSON.parse(Buffer.concat(chunks).toString()))));
"""


@contextmanager
def node() -> Iterator[Ask]:
    """Runs functions of the viewer in Node.js: `ask(body, given)` is what `body`, with `viewer` and `given` in sight, returns."""

    def ask(body: str, given: Any) -> Any:
        command = ["node", "--input-type=module", "-e", bundle.script() + IN_NODE.replace("BODY", body)]
        done = subprocess.run(command, input=json.dumps(given).encode(), capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    yield ask


@contextmanager
def chromium() -> Iterator[Ask]:
    """The same in a browser, on an empty page."""
    from playwright.sync_api import sync_playwright

    load = "async (code) => { window.viewer = await import(URL.createObjectURL(new Blob([code], {type: 'text/javascript'}))); }"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM)
        page = browser.new_page()
        page.evaluate(load, bundle.script())

        def ask(body: str, given: Any) -> Any:
            program = (
                f"async (text) => JSON.stringify(await (async (viewer, given) => {{ {body} }})(window.viewer, JSON.parse(text)))"
            )
            return json.loads(page.evaluate(program, json.dumps(given)))

        yield ask
        browser.close()


def has_node() -> bool:
    return shutil.which("node") is not None
