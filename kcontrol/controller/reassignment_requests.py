"""How partitions come to move: a tool writes a znode, an admin client asks, or a new controller finds what has been begun.

Source: KafkaController.scala (2.8): processZkPartitionReassignment, processApiPartitionReassignment,
processListPartitionReassignments, maybeTriggerPartitionReassignment, initializePartitionReassignments; KIP-455.
"""

from __future__ import annotations

from kcontrol.controller.context import ControllerContext
from kcontrol.controller.reassignment import current, maybe_resume, on_partition_reassignment, remove_requests, requested
from kcontrol.effects import Complain, ControllerMoved, Exists, Handler, Read, Respond
from kcontrol.events import ApiPartitionReassignment, ListPartitionReassignments, ZkPartitionReassignment
from kcontrol.model import ReplicaAssignment, TopicPartition
from kcontrol.znodes import REASSIGN_PARTITIONS

Answers = dict[TopicPartition, str]


def initialize_partition_reassignments(ctx: ControllerContext) -> Handler:
    """At failover: first what the znode asks for, then what else the topic znodes say is under way."""
    taken_up = yield from zk_partition_reassignment(ctx)
    yield from maybe_resume(ctx, lambda tp: tp not in taken_up)


def zk_partition_reassignment(ctx: ControllerContext, event: ZkPartitionReassignment | None = None) -> Handler:
    """Begin what the znode asks for, if it is there, and take out what cannot be done; return what was begun."""
    (stat,) = yield Exists((REASSIGN_PARTITIONS,), watch=True)
    if stat is None:
        return ()
    (znode,) = yield Read((REASSIGN_PARTITIONS,), watch=True)
    targets = requested(znode.data if znode else b"")
    answers: Answers = yield from _trigger(ctx, {tp: current(ctx, tp).reassign_to(target) for tp, target in targets.items()})
    failed = {tp for tp, answer in answers.items() if answer != "NONE"}
    if failed:
        yield from remove_requests(ctx, lambda tp, _: tp in failed)
    return tuple(tp for tp in answers if tp not in failed)


def _trigger(ctx: ControllerContext, wanted: dict[TopicPartition, ReplicaAssignment]) -> Handler:
    """Begin these reassignments; return the answer for each. Whatever one of them throws is its own affair."""
    answers: Answers = {}
    for tp, assignment in wanted.items():
        if ctx.is_queued_for_deletion(tp.topic) or not ctx.replicas(tp):
            answers[tp] = "UNKNOWN_TOPIC_OR_PARTITION"
            continue
        try:
            yield from on_partition_reassignment(ctx, tp, assignment)
            answers[tp] = "NONE"
        except ControllerMoved:
            raise
        except Exception as error:
            yield Complain(error)
            answers[tp] = "UNKNOWN_SERVER_ERROR"
    return answers


def api_partition_reassignment(ctx: ControllerContext, event: ApiPartitionReassignment) -> Handler:
    """An admin client names targets, or none to cancel; the latest request wins over what the znode says of a partition."""
    answers: Answers = {}
    wanted: dict[TopicPartition, ReplicaAssignment] = {}
    for tp, target in event.targets:
        assignment = current(ctx, tp)
        if target is None and not assignment.is_being_reassigned:
            answers[tp] = "NO_REASSIGNMENT_IN_PROGRESS"
        elif target is not None and not _is_valid(ctx, assignment, target):
            answers[tp] = "INVALID_REPLICA_ASSIGNMENT"
        else:
            wanted[tp] = assignment.reassign_to(assignment.origin if target is None else target)
    yield from remove_requests(ctx, lambda tp, _: tp in wanted)
    answers |= yield from _trigger(ctx, wanted)
    yield Respond(event.correlation_id, {"error": "NONE", "partitions": {tp: answers[tp] for tp, _ in event.targets}})


def _is_valid(ctx: ControllerContext, assignment: ReplicaAssignment, target: tuple[int, ...]) -> bool:
    """Some brokers, each once, and those that are added live. Source: KafkaController.validateReplicas (2.8)."""
    if not target or len(set(target)) < len(target) or min(target) < 0:
        return False
    return set(assignment.reassign_to(target).adding) <= set(ctx.live_broker_ids)


def list_partition_reassignments(ctx: ControllerContext, event: ListPartitionReassignments) -> Handler:
    """An admin client asks what is under way, of all partitions or of those that he names."""
    named = sorted(ctx.partitions_being_reassigned) if event.partitions is None else event.partitions
    found = {tp: a for tp in named if (a := current(ctx, tp)).is_being_reassigned}
    yield Respond(event.correlation_id, {"error": "NONE", "partitions": found})
