"""Starts reassignments: by a tool's znode, by an admin client, or at a failover.

Source: KafkaController.scala (2.8): processZkPartitionReassignment,
processApiPartitionReassignment, processListPartitionReassignments,
maybeTriggerPartitionReassignment, initializePartitionReassignments; KIP-455.
"""

from kcontrol.controller.context import ControllerContext
from kcontrol.controller.reassignment import (
    current_assignment,
    maybe_remove_from_zk_reassignment,
    maybe_resume_reassignments,
    on_partition_reassignment,
    requested_reassignments,
)
from kcontrol.core import events
from kcontrol.core.effects import ControllerMoved, Exists, Handler, LogError, Read, Respond
from kcontrol.core.model import ReplicaAssignment, TopicPartition
from kcontrol.core.znodes import REASSIGN_PARTITIONS

Responses = dict[TopicPartition, str]


def initialize_partition_reassignments(ctx: ControllerContext) -> Handler:
    """At a failover, start the reassignments in `/admin/reassign_partitions` and in topic znodes.

    A reassignment that is in both is started once.

    Source: KafkaController.initializePartitionReassignments (2.8).
    """
    taken_up = yield from zk_partition_reassignment(ctx)
    yield from maybe_resume_reassignments(ctx, lambda tp: tp not in taken_up)


def zk_partition_reassignment(
    ctx: ControllerContext, event: events.ZkPartitionReassignment | None = None
) -> Handler:
    """Start the reassignments in `/admin/reassign_partitions`; return their partitions.

    Reassignments that fail are removed from the znode and are not returned. At a failover `event`
    is None.

    Source: KafkaController.processZkPartitionReassignment (2.8).
    """
    (stat,) = yield Exists((REASSIGN_PARTITIONS,), watch=True)
    if stat is None:
        return ()
    (znode,) = yield Read((REASSIGN_PARTITIONS,), watch=True)
    targets = requested_reassignments(znode.data if znode else b"")
    responses: Responses = yield from _maybe_trigger_partition_reassignments(
        ctx, {tp: current_assignment(ctx, tp).reassign_to(target) for tp, target in targets.items()}
    )
    failed = {tp for tp, response in responses.items() if response != "NONE"}
    if failed:
        yield from maybe_remove_from_zk_reassignment(ctx, lambda tp, _: tp in failed)
    return tuple(tp for tp in responses if tp not in failed)


def _maybe_trigger_partition_reassignments(
    ctx: ControllerContext, reassignments: dict[TopicPartition, ReplicaAssignment]
) -> Handler:
    """Start these reassignments; return by partition "NONE" or the name of an error.

    An exception of one reassignment, except ControllerMoved, ends this reassignment alone.

    Source: KafkaController.maybeTriggerPartitionReassignment (2.8).
    """
    responses: Responses = {}
    for tp, assignment in reassignments.items():
        if ctx.is_queued_for_deletion(tp.topic) or not ctx.replicas(tp):
            responses[tp] = "UNKNOWN_TOPIC_OR_PARTITION"
            continue
        try:
            yield from on_partition_reassignment(ctx, tp, assignment)
            responses[tp] = "NONE"
        except ControllerMoved:
            raise
        except Exception as error:
            yield LogError(error)
            responses[tp] = "UNKNOWN_SERVER_ERROR"
    return responses


def api_partition_reassignment(
    ctx: ControllerContext, event: events.ApiPartitionReassignment
) -> Handler:
    """Start or cancel the reassignments that an admin client names, and respond.

    A target of None cancels the reassignment. The response has "NONE" or an error for each
    partition.

    Source: KafkaController.processApiPartitionReassignment (2.8).
    """
    responses: Responses = {}
    reassignments: dict[TopicPartition, ReplicaAssignment] = {}
    for tp, target in event.targets:
        assignment = current_assignment(ctx, tp)
        if target is None and not assignment.is_being_reassigned:
            responses[tp] = "NO_REASSIGNMENT_IN_PROGRESS"
        elif target is not None and not _is_valid(ctx, assignment, target):
            responses[tp] = "INVALID_REPLICA_ASSIGNMENT"
        else:
            reassignments[tp] = assignment.reassign_to(
                assignment.origin if target is None else target
            )
    # A valid request of an admin client replaces a request in ZooKeeper.
    yield from maybe_remove_from_zk_reassignment(ctx, lambda tp, _: tp in reassignments)
    responses |= yield from _maybe_trigger_partition_reassignments(ctx, reassignments)
    yield Respond(
        event.correlation_id,
        {"error": "NONE", "partitions": {tp: responses[tp] for tp, _ in event.targets}},
    )


def _is_valid(
    ctx: ControllerContext, assignment: ReplicaAssignment, target: tuple[int, ...]
) -> bool:
    """Return whether a target names at least one broker, each once, and all added brokers are live.

    `assignment` is the present assignment; an added broker is in `target` and not in `assignment`.

    Source: KafkaController.validateReplicas (2.8).
    """
    if not target or len(set(target)) < len(target) or min(target) < 0:
        return False
    return set(assignment.reassign_to(target).adding) <= set(ctx.live_broker_ids)


def list_partition_reassignments(
    ctx: ControllerContext, event: events.ListPartitionReassignments
) -> Handler:
    """Respond with the reassignments in progress of `event.partitions`, or of all if that is None.

    The response has the ReplicaAssignment of each partition that is being reassigned.

    Source: KafkaController.processListPartitionReassignments (2.8).
    """
    named = (
        sorted(ctx.partitions_being_reassigned) if event.partitions is None else event.partitions
    )
    found = {tp: a for tp in named if (a := current_assignment(ctx, tp)).is_being_reassigned}
    yield Respond(event.correlation_id, {"error": "NONE", "partitions": found})
