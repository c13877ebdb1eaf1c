"""`snapshot` returns the state of a world's znodes, brokers, requests and logs as a dict in JSON's types.

`journal.fold` computes this dict from the journal; the docstring of `Fold` lists its parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from kcontrol.cluster import consumer_clients, data_plane
from kcontrol.cluster.process import Process
from kcontrol.driver.driver import Driver
from kcontrol.journal.journal import to_json

if TYPE_CHECKING:
    from kcontrol.cluster.world import World

# Arguments of a context that never change.
CONSTANT = ("broker_id", "rules", "design", "config", "changes", "keeps_logs", "logs_operations")
ON_DISK = ("logs",)  # fields that outlive the process, and are shown apart from it
DERIVED = ("offline_partition_count", "preferred_replica_imbalance_count")  # fields that follow from the other fields


def snapshot(world: World) -> dict[str, Any]:
    znodes = {
        path: [to_json(node.data), node.stat.version, world.owners.get(node.stat.ephemeral_owner)]
        for path, node in world.zk.tree().items()
    }
    channels = {
        f"{s}>{r}": [[str(p.record), p.api] for p in waiting] for (s, r), waiting in world.network.channels.items() if waiting
    }
    to_controller = {
        str(n): [{"record": str(q.record), "api": q.api, "body": to_json(q.body)} for q in asked]
        for n, asked in world.network.to_controller.items()
    }
    nodes = {str(n): _node(p) for n, p in world.processes.items()}
    kept = {"logs": _field(data_plane.replicas(world)), "acknowledged": _field(world.acknowledged)} if world.settings.data else {}
    return {
        "znodes": znodes, "nodes": nodes, "channels": channels, "to_controller": to_controller, **kept,
        **consumer_clients.snapshot(world),
    }  # fmt: skip


def _node(p: Process) -> dict[str, Any]:
    driver = p.driver
    return {
        "controller": context(driver.controller),
        "broker": context(driver.broker),
        "queues": {name: [to_json(item.event) for item in t.queue.waiting] for name, t in driver.threads.items()},
        "handling": {name: to_json(t.event) for name, t in driver.threads.items() if t.handler is not None},
        "timers": _timers(driver),
        "parked": dict(driver.parked),
        "notifications": [list(queued.event) for queued in p.notifications],
        "frozen": p.frozen,
        **({"group": context(driver.group)} if driver.group else {}),
    }


def _timers(driver: Driver) -> dict[str, Any]:
    return {name: {"at_ms": t.at_ms, "thread": t.thread, "event": to_json(t.event)} for name, t in driver.timers.items()}


def context(ctx: Any) -> dict[str, Any]:
    """Without logs, which are on disk, and counts that other fields give."""
    names = [name for name in type(ctx).__slots__ if name not in CONSTANT + DERIVED + ON_DISK]
    return {name: _field(getattr(ctx, name)) for name in names}


def _field(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(to_json(key)): to_json(item) for key, item in value.items()}
    return sorted(map(to_json, value)) if isinstance(value, AbstractSet) else to_json(value)
