"""Tables of replicas: state in the controller, role (leader or follower) at the broker, leadership in broker caches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kcontrol.lab.run import Run
from kcontrol.lab.support.late import pd
from kcontrol.lab.tables import elections, journal_tables
from kcontrol.views import folded_state

# `state`: in the memory of the active controller. `in_sync`: the ISR in the state znode has the replica. `role` and
# `leader_epoch`: by the last LeaderAndIsr that the broker accepted; missing if it does not host the replica, and in a
# recording.
REPLICAS = {"state": "string", "alive": "bool", "in_sync": "bool", "role": "string", "leader_epoch": "Int64"}
# A row `hosts` is the leadership that a broker with a replica got by LeaderAndIsr, or changed itself as leader. A row
# `metadata` is the leadership that a broker got by UpdateMetadata and sends to clients.
LEADERSHIP_VIEWS = {"leader": "Int64", "isr": "object", "leader_epoch": "Int64", "controller_epoch": "Int64",
                    "zk_version": "Int64"}  # fmt: skip


def replicas(run: Run) -> pd.DataFrame:
    """Each replica, such as `t-0@2`: its state at the controller, its role at its broker.

    The role is "leads", "follows 3" or "waits for a leader"; missing before the broker has a LeaderAndIsr.
    """
    return journal_tables.table(_rows(run.state), REPLICAS, "replica")


def _rows(state: folded_state.State) -> Iterator[dict[str, Any]]:
    states = journal_tables.states_at_the_controller(state, "replica")
    for p in folded_state.partitions(state):
        for broker in p.replicas:
            node = state["nodes"].get(str(broker))
            held = _hosted(node).get(p.name)
            row = {"replica": f"{p.name}@{broker}", "state": states.get(f"{p.name}@{broker}"), "alive": node is not None}
            row |= {"in_sync": broker in p.isr, "role": _role(held, broker), "leader_epoch": held and held["leader_epoch"]}
            yield row


def _hosted(node: Mapping[str, Any] | None) -> dict[str, Any]:
    """The leadership of each hosted partition, by name; {} for a dead broker, whose `node` is None."""
    return {name: held["leadership"] for name, held in (node or {}).get("broker", {}).get("hosted", {}).items()}


def _role(held: Mapping[str, Any] | None, broker: int) -> str | None:
    if held is None:
        return None
    return "leads" if held["leader"] == broker else f"follows {held['leader']}" if held["leader"] >= 0 else "waits for a leader"


def leadership_views(run: Run, partition: str) -> pd.DataFrame:
    """A partition's leader, ISR and epochs in ZooKeeper, at the controller, and in each broker's caches.

    A broker has copies from LeaderAndIsr (`hosts`) and from UpdateMetadata (`metadata`); a place without a copy has no row.
    Raises UserError for an unknown partition.
    """
    return journal_tables.table(_places(run.state, partition), LEADERSHIP_VIEWS, "where")


def _places(state: folded_state.State, partition: str) -> Iterator[dict[str, Any]]:
    p = elections.find(state, partition)
    if p.leader is not None:
        yield {"where": "ZooKeeper", **{name: getattr(p, name) for name in LEADERSHIP_VIEWS}, "isr": list(p.isr)}
    ruler = folded_state.controller(state)
    known = folded_state.controller_memory(state).get("leadership", {})
    if ruler and partition in known:
        yield {"where": f"{ruler[0]} controls", **known[partition]}
    for broker, node in folded_state.nodes(state):
        for where, found in (("hosts", _hosted(node)), ("metadata", node["broker"].get("metadata", {}))):
            if partition in found:
                yield {"where": f"{broker} {where}", **found[partition]}
