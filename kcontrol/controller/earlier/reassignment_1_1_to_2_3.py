"""Handles reassignments from 1.1 to 2.3: starts, continues and ends them, in twelve steps.

`/admin/reassign_partitions` is only the request. When a reassignment ends, the controller writes
the other reassignments in its memory to this znode.

Source: KafkaController.scala (1.1): maybeTriggerPartitionReassignment,
removePartitionFromReassignedPartitions, initializePartitionReassignment, PartitionReassignment,
PartitionReassignmentIsrChange.
"""

from collections.abc import Collection, Iterable

from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.earlier import reassignment_to_2_3
from kcontrol.controller.reassignment import are_in_isr, requested_reassignments
from kcontrol.core import effects
from kcontrol.core.effects import Handler
from kcontrol.core.events import PartitionReassignmentIsrChange, ZkPartitionReassignment
from kcontrol.core.model import TopicPartition
from kcontrol.core.znodes import REASSIGN_PARTITIONS, state_path


def zk_partition_reassignment(ctx: ControllerContext, event: ZkPartitionReassignment) -> Handler:
    """Store all reassignments in `/admin/reassign_partitions` in the context, and start them.

    Do nothing if the znode is missing. Source: KafkaController.PartitionReassignment (1.1).
    """
    (stat,) = yield effects.Exists((REASSIGN_PARTITIONS,), watch=True)
    if stat is not None:
        requested = yield from initialize_reassignments(ctx)
        yield from _maybe_trigger_reassignments(ctx, requested)


def initialize_reassignments(ctx: ControllerContext) -> Handler:
    """Read `/admin/reassign_partitions` into the context; return its partitions, () if none.

    Source: KafkaController.initializePartitionReassignment (1.1).
    """
    (znode,) = yield effects.Read((REASSIGN_PARTITIONS,), watch=True)
    targets = requested_reassignments(znode.data if znode else b"")
    if targets:
        yield effects.UpdateContext("partitions_being_reassigned", targets)
    return tuple(targets)


def trigger_reassignments(ctx: ControllerContext) -> Handler:
    """Start all reassignments in the context, after the failover has started the state machines."""
    yield from _maybe_trigger_reassignments(ctx, tuple(ctx.partitions_being_reassigned))


def _maybe_trigger_reassignments(
    ctx: ControllerContext, partitions: Iterable[TopicPartition]
) -> Handler:
    """Start the reassignment of each of these partitions to its target in the context.

    Instead remove it from `/admin/reassign_partitions` if the partition is unknown, if its topic is
    being deleted, or if it has the target replicas already; also after an error.

    Source: KafkaController.maybeTriggerPartitionReassignment (1.1).
    """
    for tp in partitions:
        target = ctx.partitions_being_reassigned[tp]
        is_known = tp in ctx.assignments and not ctx.is_queued_for_deletion(tp.topic)
        if not is_known or ctx.replicas(tp) == target:
            yield from reassignment_to_2_3.remove_from_reassigning_partitions(ctx, tp)
            continue
        try:
            yield effects.RegisterZNodeHandler(state_path(tp))
            yield from deletion.mark_topics_ineligible_for_deletion(ctx, (tp.topic,))
            yield from reassignment_to_2_3.on_partition_reassignment(ctx, tp, target)
        except effects.ControllerMoved:
            raise
        # A reassignment that fails is removed from the znode too.
        except Exception as error:
            yield effects.LogError(error)
            yield from reassignment_to_2_3.remove_from_reassigning_partitions(ctx, tp)


def partition_reassignment_isr_change(
    ctx: ControllerContext, event: PartitionReassignmentIsrChange
) -> Handler:
    """End the partition's reassignment if every target replica is in the ISR, else do nothing.

    Also do nothing for a partition that is not being reassigned. Source:
    KafkaController.PartitionReassignmentIsrChange (1.1).
    """
    tp = event.partition
    target = ctx.partitions_being_reassigned.get(tp)
    if target is not None and (yield from are_in_isr(ctx, tp, target)):
        # Steps 5 to 12 of `reassign_in_twelve_steps`.
        yield from reassignment_to_2_3.on_partition_reassignment(ctx, tp, target)


def resume_reassignments_on(ctx: ControllerContext, brokers: Collection[int]) -> Handler:
    """Start again each reassignment with a target replica on `brokers`, which have just started.

    Source: KafkaController.onBrokerStartup (1.1).
    """
    for tp, target in sorted(ctx.partitions_being_reassigned.items()):
        if any(b in brokers for b in target):
            yield from reassignment_to_2_3.on_partition_reassignment(ctx, tp, target)
