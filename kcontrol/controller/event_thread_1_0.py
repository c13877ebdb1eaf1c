"""What the event thread does about brokers, topics and notes where listeners have read for it.

Source: KafkaController.scala (0.11, 1.0): TopicChange, TopicDeletion, IsrChangeNotification, LogDirEventNotification,
ControlledShutdown; LogDirUtils.scala (1.0).
"""

from __future__ import annotations

from kcontrol.controller import broker_changes as brokers
from kcontrol.controller import isr_changes as isr
from kcontrol.controller import partition_machine
from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.listeners_0_8 import stop
from kcontrol.controller.topic_changes import meet_topics
from kcontrol.effects import Handler, Learn, Respond
from kcontrol.events import ControlledShutdown, IsrChangeNotification, LogDirEventNotification, TopicChange, TopicDeletion
from kcontrol.model import PartitionState
from kcontrol.znodes import ISR_CHANGE_NOTIFICATION, LOG_DIR_EVENT_NOTIFICATION


def topic_change(ctx: ControllerContext, event: TopicChange) -> Handler:
    """New topics, as the listener has found them, get their first leaders; vanished ones are half forgotten."""
    yield from meet_topics(ctx, event.topics or ())


def topic_deletion(ctx: ControllerContext, event: TopicDeletion) -> Handler:
    """Queue what the listener has found."""
    yield from deletion.asked_for(ctx, event.topics or ())


def isr_change_notification(ctx: ControllerContext, event: IsrChangeNotification) -> Handler:
    """Look at what the notes name that the listener has found, and delete these notes."""
    yield from isr.take_notes(ctx, tuple(f"{ISR_CHANGE_NOTIFICATION}/{name}" for name in event.sequence_numbers or ()))


def log_dir_event_notification(ctx: ControllerContext, event: LogDirEventNotification) -> Handler:
    """The same of brokers that have lost a log directory; nobody looks whether this broker still rules."""
    yield from brokers.ask_again(ctx, tuple(f"{LOG_DIR_EVENT_NOTIFICATION}/{name}" for name in event.sequence_numbers or ()))


def controlled_shutdown(ctx: ControllerContext, event: ControlledShutdown) -> Handler:
    """Partition by partition: where the broker leads another one does, where it follows it is stopped."""
    broker_id = event.broker_id
    if broker_id not in ctx.live_broker_epochs:
        yield Respond(event.correlation_id, {"error": "BrokerNotAvailableException", "partitions": {}})
        return
    yield Learn("shutting_down_broker_ids", (broker_id,))
    replicated = {tp: a.replicas for tp, a in ctx.assignments.items() if broker_id in a.replicas and len(a.replicas) > 1}
    for tp in [tp for tp in replicated if tp in ctx.leadership]:
        if ctx.leadership[tp].leader == broker_id:
            yield from partition_machine.move(ctx, (tp,), PartitionState.ONLINE, "controlled_shutdown")
        else:
            yield from stop(ctx, tp, broker_id)
    led = [tp for tp, value in ctx.leadership.items() if value.leader == broker_id and len(ctx.replicas(tp)) > 1]
    yield Respond(event.correlation_id, {"error": "NONE", "partitions": dict.fromkeys(led, "NONE")})
