"""What a picture shows of a world, taken from the world itself: the other side of `runtime.fold`."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from kcontrol.controller.context import ControllerContext
from kcontrol.group.context import GroupContext
from kcontrol.replica.context import BrokerContext
from kcontrol.runtime.driver import Driver
from kcontrol.runtime.journal import plain
from kcontrol.sim import data, groups
from kcontrol.sim.process import Process

if TYPE_CHECKING:
    from kcontrol.sim.world import World

GIVEN = ("broker_id", "rules", "config", "replace", "keeps_logs")  # what a context is made with, and never learns
ON_DISK = ("logs",)  # what outlives the process, and is shown beside it
COUNTED = ("offline_partition_count", "preferred_replica_imbalance_count")  # what follows from the rest


def snapshot(world: World) -> dict[str, Any]:
    znodes = {
        path: [plain(node.data), node.stat.version, world.owners.get(node.stat.ephemeral_owner)]
        for path, node in world.zk.tree().items()
    }
    channels = {
        f"{s}>{r}": [[str(p.record), p.api] for p in parcels] for (s, r), parcels in world.network.channels.items() if parcels
    }
    questions = {
        str(n): [{"record": str(q.record), "api": q.api, "body": plain(q.body)} for q in asked]
        for n, asked in world.network.questions.items()
    }
    nodes = {str(n): _node(p) for n, p in world.processes.items()}
    kept = {"logs": _field(data.replicas(world)), "acknowledged": _field(world.acknowledged)} if world.settings.data else {}
    return {"znodes": znodes, "nodes": nodes, "channels": channels, "questions": questions, **kept, **groups.snapshot(world)}


def _node(p: Process) -> dict[str, Any]:
    driver = p.driver
    return {
        "controller": context(driver.controller),
        "broker": context(driver.broker),
        "queues": {name: [plain(item.event) for item in t.queue.waiting] for name, t in driver.threads.items()},
        "handling": {name: plain(t.event) for name, t in driver.threads.items() if t.handler is not None},
        "timers": _timers(driver),
        "parked": dict(driver.parked),
        "notices": [list(notice.event) for notice in p.notices],
        "frozen": p.frozen,
        **({"group": context(driver.group)} if driver.group else {}),
    }


def _timers(driver: Driver) -> dict[str, Any]:
    return {name: {"at_ms": t.at_ms, "thread": t.thread, "event": plain(t.event)} for name, t in driver.timers.items()}


def context(ctx: Any) -> dict[str, Any]:
    """Every field that a context has learnt, in plain values."""
    names = [name for name in type(ctx).__slots__ if name not in GIVEN + COUNTED + ON_DISK]
    return {name: _field(getattr(ctx, name)) for name in names}


def _field(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    return sorted(map(plain, value)) if isinstance(value, AbstractSet) else plain(value)


def settled(state: dict[str, Any]) -> dict[str, Any]:
    """A snapshot or a fold without what is empty or has its first value, so that the two compare."""
    nodes = {}
    for n, node in state["nodes"].items():
        rooms = {room: _learnt(node[room], cls) for room, cls in (("controller", ControllerContext), ("broker", BrokerContext))}
        rooms |= {"group": _learnt(node["group"], GroupContext)} if "group" in node else {}
        nodes[n] = node | rooms | {"queues": {name: waiting for name, waiting in node["queues"].items() if waiting}}
    return state | {"nodes": nodes}


def _learnt(room: dict[str, Any], cls: Any) -> dict[str, Any]:
    first = {f.name: f.default for f in fields(cls)}
    return {name: value for name, value in room.items() if value not in ({}, [], first[name])}
