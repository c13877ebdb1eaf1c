"""A leader that writes its ISR itself says so later, through ZooKeeper: one znode for all that has changed since the last one.

Source: ReplicaManager.recordIsrChange and maybePropagateIsrChanges, KafkaZkClient.propagateIsrChanges (2.4; since 0.9.0).
"""

from __future__ import annotations

from kcontrol.effects import Arm, Handler, Learn, Op, Transaction
from kcontrol.events import PropagateIsrChanges
from kcontrol.model import TopicPartition
from kcontrol.replica.context import BrokerContext
from kcontrol.znodes import ISR_CHANGE_NOTIFICATION, encode_partition_list

PROPAGATION_TIMER = "isr-change-propagation"
QUIET_MS = 5_000


def record_isr_change(ctx: BrokerContext, tp: TopicPartition) -> Handler:
    """Remember the partition, and wait until nothing more changes for a while."""
    if ctx.rules.isr_notifications:
        yield Learn("isr_changes", (tp,), context="broker")
        yield Arm(PROPAGATION_TIMER, QUIET_MS, PropagateIsrChanges())


def propagate_isr_changes(ctx: BrokerContext, event: PropagateIsrChanges) -> Handler:
    """Leave a numbered znode that names the partitions, for whoever is controller."""
    if ctx.isr_changes:
        data = encode_partition_list(tuple(sorted(ctx.isr_changes)))
        yield Transaction((Op("create", f"{ISR_CHANGE_NOTIFICATION}/isr_change_", data, sequential=True),))
        yield Learn("isr_changes", clear=True, context="broker")
