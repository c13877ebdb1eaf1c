"""The kinds that ask for one decision: election, isr_removal, transition, assignment, placement."""

from __future__ import annotations

from typing import Any

from kcontrol.cluster.topic_tool import assign_replicas
from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller.partition_machine import PARTITION_TRANSITIONS
from kcontrol.controller.replica_machine import REPLICA_TRANSITIONS
from kcontrol.core.model import (
    NO_LEADER,
    LeaderAndIsr,
    PartitionReplica,
    PartitionState,
    ReplicaAssignment,
    ReplicaState,
    TopicPartition,
)
from kcontrol.core.znodes import decode_state, encode_state, state_path
from kcontrol.journal.journal import Record
from tests.conformance.bench import Bench
from tests.conformance.values import PARTITION_STATES, assignment, look_up

Case = dict[str, Any]

TP = TopicPartition("t", 0)


def election(case: Case) -> dict[str, Any]:
    """One election of the partition machine, from the state znode to the state znode."""
    given = case["given"]
    bench = Bench(case["version"], unclean=given.get("unclean", False))
    bench.lead()
    offline_dirs = dict.fromkeys(given.get("offline_dir", ()), frozenset({TP}))
    bench.register(given["live"], given.get("shutting_down", ()), offline_dirs)
    stored = _stored(given.get("leader", given["isr"][0] if given["isr"] else NO_LEADER), given)
    bench.put(state_path(TP), encode_state(stored))
    bench.know(assignments={TP: _assigned(given)}, leadership={TP: stored}, partition_states={TP: PartitionState.ONLINE})
    strategy = given["strategy"]
    records = bench.run_handler(lambda ctx: partition_machine.handle_state_changes(ctx, [TP], PartitionState.ONLINE, strategy))
    found: dict[str, Any] = dict.fromkeys(("leader", "isr", "recipients", "leader_epoch"))
    if not bench.controller.rules.pipelined and (thrown := _thrown(records)):
        return {"error": thrown}
    found["unclean_elections"] = sum(record.fields.get("rule") == "unclean" for record in records)
    for record in records:
        if record.kind == "change":
            value = record.fields["leadership"]
            found |= {"leader": value.leader, "isr": value.isr, "leader_epoch": value.leader_epoch}
            found["recipients"] = partition_machine.recipients(bench.controller, TP, strategy)
    return found


def _thrown(records: list[Record]) -> str | None:
    """What a selector throws before 1.1 where no leader is chosen."""
    for record in records:
        if record.kind == "failed_change":
            return str(record.fields["reason"]).partition(":")[0]
        if record.kind == "change" and record.fields["rule"] == "not needed":
            return "LeaderElectionNotNeededException"
    return None


def _stored(leader: int, given: Case) -> LeaderAndIsr:
    return LeaderAndIsr(leader, tuple(given["isr"]), given.get("leader_epoch", 0), 0, 1)


def _assigned(given: Case) -> ReplicaAssignment:
    """The assignment; with a target, the one that a reassignment to it would have."""
    replicas, target = tuple(given["assignment"]), tuple(given.get("target", ()))
    if not target:
        return ReplicaAssignment(replicas)
    return ReplicaAssignment(tuple(dict.fromkeys(target + replicas)), (), tuple(b for b in replicas if b not in target))


def isr_removal(case: Case) -> dict[str, Any]:
    """One online replica goes offline; all brokers are there, so nothing else happens."""
    given = case["given"]
    bench = Bench(case["version"], broker_id=0, unclean=given.get("unclean", False))
    bench.lead()
    stored, leaving = _stored(given["leader"], given), PartitionReplica(TP, given["replica"])
    replicas = tuple(dict.fromkeys((*stored.isr, *(() if stored.leader == NO_LEADER else (stored.leader,)), leaving.broker_id)))
    bench.put(state_path(TP), encode_state(stored))
    bench.register(replicas)
    bench.know(
        assignments={TP: ReplicaAssignment(replicas)}, leadership={TP: stored}, partition_states={TP: PartitionState.ONLINE},
        replica_states={leaving: ReplicaState.ONLINE},
    )  # fmt: skip
    bench.run_handler(lambda ctx: replica_machine.handle_state_changes(ctx, [leaving], ReplicaState.OFFLINE))
    (znode,) = bench.tool.read([state_path(TP)], False)
    assert znode is not None
    after = decode_state(znode.data, znode.stat.version)
    return {"leader": after.leader, "isr": after.isr, "leader_epoch": after.leader_epoch, "zk_write": after.zk_version > 0}


def transition(case: Case) -> dict[str, Any]:
    """What the table of a machine says about one state, in the case's release."""
    given = case["given"]
    machine, states = look_up(MACHINES, "machine", given["machine"])
    source = look_up(states, f"state of a {given['machine']}", given["from"])
    table = machine.for_(case["version"])
    return {"to": {name: table.find(source, look_up(states, "state", name)) is not None for name in case["then"]["to"]}}


MACHINES = {
    "partition": (PARTITION_TRANSITIONS, PARTITION_STATES),
    "replica": (REPLICA_TRANSITIONS, {state.value: state for state in ReplicaState}),
}


def reassignment(case: Case) -> dict[str, Any]:
    """The triple of an assignment, after heading for another target if the case says so."""
    after = assignment(case["given"])
    if "when" in case:
        after = after.reassign_to(tuple(case["when"]["reassign_to"]))
    found: dict[str, Any] = dict(after._asdict())
    return found | {"origin": after.origin, "target": after.target, "being_reassigned": after.is_being_reassigned}


def placement(case: Case) -> dict[str, Any]:
    """Automatic placement without racks, from a fixed start."""
    given = case["given"]
    start = given["start_index"]
    chosen = assign_replicas(given["brokers"], given["partitions"], given["replication_factor"], start, start)
    return {"assignment": dict(enumerate(chosen))}


KINDS = {
    # kind           what it did, under the keys of `then`
    "election":      election,
    "isr_removal":   isr_removal,
    "transition":    transition,
    "assignment":    reassignment,
    "placement":     placement,
}  # fmt: skip
