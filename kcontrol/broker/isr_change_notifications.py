"""Notifications of ISR changes: a leader batches its changes in one sequential znode.

From 0.9 to 2.6. Source: ReplicaManager.recordIsrChange and maybePropagateIsrChanges,
KafkaZkClient.propagateIsrChanges (2.4; since 0.9.0).
"""

from kcontrol.broker.context import BrokerContext
from kcontrol.broker.events import PropagateIsrChanges
from kcontrol.core.effects import Handler, Op, SetTimer, Transaction, UpdateContext
from kcontrol.core.model import TopicPartition
from kcontrol.core.znodes import ISR_CHANGE_NOTIFICATION, encode_partition_list

PROPAGATION_TIMER = "isr-change-propagation"
BLACKOUT_MS = 5_000


def record_isr_change(ctx: BrokerContext, tp: TopicPartition) -> Handler:
    """A later ISR change restarts the timer, so one notification has many changes."""
    if ctx.rules.isr_notifications:
        yield UpdateContext("isr_changes", (tp,), context="broker")
        yield SetTimer(PROPAGATION_TIMER, BLACKOUT_MS, PropagateIsrChanges())


def propagate_isr_changes(ctx: BrokerContext, event: PropagateIsrChanges) -> Handler:
    """A sequential znode with the batch notifies the controller."""
    if ctx.isr_changes:
        data = encode_partition_list(tuple(sorted(ctx.isr_changes)))
        path = f"{ISR_CHANGE_NOTIFICATION}/isr_change_"
        yield Transaction((Op("create", path, data, sequential=True),))
        yield UpdateContext("isr_changes", clear=True, context="broker")
