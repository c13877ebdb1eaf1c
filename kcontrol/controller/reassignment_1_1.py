"""The twelve steps of a reassignment on the event thread: what is under way is known in memory, and the znode is written from it.

Source: KafkaController.scala (1.1): maybeTriggerPartitionReassignment, removePartitionFromReassignedPartitions,
initializePartitionReassignment, PartitionReassignment, PartitionReassignmentIsrChange.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.reassignment import is_in_sync, requested
from kcontrol.controller.reassignment_0_8 import on_partition_reassignment, remove
from kcontrol.effects import Complain, ControllerMoved, Exists, Handler, Learn, Read, Watch
from kcontrol.events import PartitionReassignmentIsrChange, ZkPartitionReassignment
from kcontrol.model import TopicPartition
from kcontrol.znodes import REASSIGN_PARTITIONS, state_path


def zk_partition_reassignment(ctx: ControllerContext, event: ZkPartitionReassignment) -> Handler:
    """All that the znode names is under way from now on, and begun."""
    (stat,) = yield Exists((REASSIGN_PARTITIONS,), watch=True)
    if stat is not None:
        asked = yield from learn(ctx)
        yield from _trigger(ctx, asked)


def learn(ctx: ControllerContext) -> Handler:
    """Remember what the znode asks for, and return the partitions."""
    (znode,) = yield Read((REASSIGN_PARTITIONS,), watch=True)
    targets = requested(znode.data if znode else b"")
    if targets:
        yield Learn("partitions_being_reassigned", targets)
    return tuple(targets)


def take_up(ctx: ControllerContext) -> Handler:
    """At failover, once the machines run: begin what has been learnt."""
    yield from _trigger(ctx, tuple(ctx.partitions_being_reassigned))


def _trigger(ctx: ControllerContext, partitions: Iterable[TopicPartition]) -> Handler:
    """Begin each; what is being deleted, is there already, is unknown or fails is taken out of the request."""
    for tp in partitions:
        target = ctx.partitions_being_reassigned[tp]
        if ctx.is_queued_for_deletion(tp.topic) or tp not in ctx.assignments or ctx.replicas(tp) == target:
            yield from remove(ctx, tp)
            continue
        try:
            yield Watch(state_path(tp))
            yield from deletion.halt(ctx, (tp.topic,))
            yield from on_partition_reassignment(ctx, tp, target)
        except ControllerMoved:
            raise
        except Exception as error:
            yield Complain(error)
            yield from remove(ctx, tp)


def partition_reassignment_isr_change(ctx: ControllerContext, event: PartitionReassignmentIsrChange) -> Handler:
    """The state znode has changed: go on if everything that is asked for is in sync now."""
    tp = event.partition
    target = ctx.partitions_being_reassigned.get(tp)
    if target is not None and (yield from is_in_sync(ctx, tp, target)):
        yield from on_partition_reassignment(ctx, tp, target)


def resume_on(ctx: ControllerContext, brokers: Collection[int]) -> Handler:
    """Brokers have come up: begin again with what is to move to them."""
    for tp, target in sorted(ctx.partitions_being_reassigned.items()):
        if any(b in brokers for b in target):
            yield from on_partition_reassignment(ctx, tp, target)
