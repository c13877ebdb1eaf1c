"""Handles changed topics, notifications and controlled shutdowns in 0.11 and 1.0.

An event of a changed znode has the data that ZkClient's listener has read.

Source: KafkaController.scala (0.11, 1.0): TopicChange, TopicDeletion, IsrChangeNotification,
LogDirEventNotification, ControlledShutdown; LogDirUtils.scala (1.0).
"""

from kcontrol.controller import isr_changes as isr
from kcontrol.controller import log_dir_failures as log_dirs
from kcontrol.controller import partition_machine
from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.earlier import listener_handlers
from kcontrol.core import events
from kcontrol.core.effects import Handler, Respond, UpdateContext
from kcontrol.core.model import PartitionState
from kcontrol.core.znodes import ISR_CHANGE_NOTIFICATION, LOG_DIR_EVENT_NOTIFICATION


def topic_change(ctx: ControllerContext, event: events.TopicChange) -> Handler:
    """Create the partitions of new topics, and remove the assignments of missing topics.

    The listener has read the names of all topics before the event was queued.

    Source: KafkaController.TopicChange (0.11, 1.0).
    """
    yield from listener_handlers.on_topic_list_change(ctx, event.topics or ())


def topic_deletion(ctx: ControllerContext, event: events.TopicDeletion) -> Handler:
    """Queue for deletion the topics that the listener has read in `/admin/delete_topics`.

    Source: KafkaController.TopicDeletion (0.11, 1.0).
    """
    yield from deletion.queue_topic_deletions(ctx, event.topics or ())


def isr_change_notification(ctx: ControllerContext, event: events.IsrChangeNotification) -> Handler:
    """Send UpdateMetadata for the partitions in ISR notifications, then delete the notifications.

    The listener has read the notifications' names. UpdateMetadata has the leadership that the state
    znodes have now.

    Source: KafkaController.IsrChangeNotification (0.11, 1.0).
    """
    yield from isr.process_isr_notifications(
        ctx, tuple(f"{ISR_CHANGE_NOTIFICATION}/{name}" for name in event.sequence_numbers or ())
    )


def log_dir_event_notification(
    ctx: ControllerContext, event: events.LogDirEventNotification
) -> Handler:
    """Send each broker in the notifications a LeaderAndIsr of all replicas on the broker.

    Then delete the notifications of failed log directories.

    Source: KafkaController.LogDirEventNotification (1.0).
    """
    # The listener has listed the notifications before the event was queued. Kafka does not check
    # here whether this broker is still controller.
    yield from log_dirs.process_log_dir_events(
        ctx, tuple(f"{LOG_DIR_EVENT_NOTIFICATION}/{name}" for name in event.sequence_numbers or ())
    )


def controlled_shutdown(ctx: ControllerContext, event: events.ControlledShutdown) -> Handler:
    """Elect other leaders for partitions that the stopping broker leads; stop its other replicas.

    Then respond with the partitions that the broker still leads and that have another replica.

    Source: KafkaController.ControlledShutdown (0.11, 1.0).
    """
    broker_id = event.broker_id
    if broker_id not in ctx.live_broker_epochs:
        yield Respond(
            event.correlation_id, {"error": "BrokerNotAvailableException", "partitions": {}}
        )
        return
    yield UpdateContext("shutting_down_broker_ids", (broker_id,))
    hosted = [tp for tp, a in ctx.assignments.items() if broker_id in a.replicas]
    # One partition is handled after the other.
    for tp in [tp for tp in hosted if len(ctx.replicas(tp)) > 1 and tp in ctx.leadership]:
        if ctx.leadership[tp].leader == broker_id:
            yield from partition_machine.handle_state_changes(
                ctx, (tp,), PartitionState.ONLINE, "controlled_shutdown"
            )
        else:
            yield from listener_handlers.stop_replica(ctx, tp, broker_id)
    yield listener_handlers.respond_with_leaderships(ctx, event)
