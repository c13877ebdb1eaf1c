"""What the searches share: how a run becomes a scenario that can be pasted, and how one is run."""

from __future__ import annotations

from typing import Any

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.search.search import SearchResult
from tests.core.support import settle


def two_brokers(faults: tuple[str, ...] = ("create_topic", "delete_controller"), **rule_changes: Any) -> World:
    """A quiet cluster of two brokers without topics; requests are delivered at once, and no follower ever catches up."""
    settings = Settings(
        brokers=(1, 2), topics={"t": ((1, 2),)}, faults=faults, instant_requests=True, followers=False, rule_changes=rule_changes
    )
    world = World(settings)
    for broker in world.settings.brokers:
        settle(world, ("start", broker))
    return world


DEPOSED_WRITE = (
    ("create_topic", "t", ((1, 2),)), ("deliver_notification", 1), ("begin", 1, "controller"),
    *[("advance", 1, "controller")] * 4, ("delete", "/controller"), ("deliver_notification", 2), ("begin", 2, "controller"),
    *[("advance", 2, "controller")] * 5, ("advance", 1, "controller"),
)  # fmt: skip
"""Without a fence: broker 1 writes what it decided before broker 2 became controller."""


def scenario(world: World, found: str) -> str:
    """The whole run as Python that can be pasted."""
    return SearchResult(0, world.settings, found, (), tuple(world.done)).scenario()


def pasted(text: str) -> World:
    """The world that a scenario leads to."""
    room: dict[str, Any] = {}
    exec(compile(text, "scenario", "exec"), room)
    world: World = room["world"]
    return world
