"""Replicas as they stand: what the controller takes each for, and what its broker has heard of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from kcontrol.lab import electing, tables
from kcontrol.views import scene

REPLICAS = {"state": "string", "alive": "bool", "in_sync": "bool", "told": "string", "leader_epoch": "Int64"}
HEARD = {"leader": "Int64", "isr": "object", "leader_epoch": "Int64", "controller_epoch": "Int64", "zk_version": "Int64"}


def replicas(state: scene.State) -> pd.DataFrame:
    """One row per replica of each partition, in the order of the assignment, by name such as `t-0@2`.

    `state`: the replica's, in the memory of the active controller. `alive`: its broker is running. `in_sync`: the state znode
    names it. `told`: what its broker does about it, `leads` or `follows` somebody, and `leader_epoch` the one that it was told
    last; both are missing where the broker does nothing.
    A recording says nothing of the last two.
    """
    return tables.table(_rows(state), REPLICAS, "replica")


def _rows(state: scene.State) -> Iterator[dict[str, Any]]:
    states = tables.states_at_the_controller(state, "replica")
    for p in scene.partitions(state):
        for broker in p.replicas:
            node = state["nodes"].get(str(broker))
            held = _hosted(node).get(p.name)
            row = {"replica": f"{p.name}@{broker}", "state": states.get(f"{p.name}@{broker}"), "alive": node is not None}
            row |= {"in_sync": broker in p.isr, "told": _role(held, broker), "leader_epoch": held and held["leader_epoch"]}
            yield row


def _hosted(node: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a broker leads or follows, by the names of the partitions."""
    return {name: held["value"] for name, held in (node or {}).get("broker", {}).get("hosted", {}).items()}


def _role(held: Mapping[str, Any] | None, broker: int) -> str | None:
    if held is None:
        return None
    return "leads" if held["leader"] == broker else f"follows {held['leader']}" if held["leader"] >= 0 else "waits for a leader"


def told(state: scene.State, partition: str) -> pd.DataFrame:
    """One row per place that says who leads a partition: ZooKeeper, the controller's memory, and two for each running broker.

    `hosts`: what LeaderAndIsr, or a leader's own change of the ISR, has left at a broker that has a replica. `metadata`: what
    UpdateMetadata has left, which is what clients are told. Whoever knows nothing of the partition has no row.
    Raises UserError for a partition that is not there.
    """
    electing.find(state, partition)
    return tables.table(_places(state, partition), HEARD, "where")


def _places(state: scene.State, partition: str) -> Iterator[dict[str, Any]]:
    p = electing.find(state, partition)
    if p.leader is not None:
        yield {"where": "ZooKeeper", **{name: getattr(p, name) for name in HEARD}, "isr": list(p.isr)}
    ruler = scene.controller(state)
    known = state["nodes"].get(str(ruler[0]), {}).get("controller", {}).get("leadership", {}) if ruler else {}
    if ruler and partition in known:
        yield {"where": f"{ruler[0]} controls", **known[partition]}
    for broker, node in sorted(state["nodes"].items(), key=lambda pair: int(pair[0])):
        for where, found in (("hosts", _hosted(node)), ("metadata", node["broker"].get("metadata", {}))):
            if partition in found:
                yield {"where": f"{broker} {where}", **found[partition]}
