"""The steps of failover and resignation that only earlier releases have.

The tables FAILOVER and RESIGNATION of `listeners_to_0_10.py` and `event_queue_0_11.py` have the
order of these steps.

Source: KafkaController.onControllerFailover and onControllerResignation (0.8.0 to 1.0).
"""

# From 1.1 to 2.1.0 a resignation has one of them, `await_all_requests` (`event_thread_to_2_5.py`).
from collections.abc import Iterable

from kcontrol.controller import failover_steps, replica_machine
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.design import Step
from kcontrol.controller.earlier.controller_epoch_increment import read_controller_epoch
from kcontrol.core import effects
from kcontrol.core.effects import Handler
from kcontrol.core.model import ReplicaState
from kcontrol.core.znodes import DELETE_TOPICS, LOG_DIR_EVENT_NOTIFICATION, topic_path

# ---------------------------------------------------------------- listeners


def subscribe_data_changes(path: str) -> Step:
    """Return a step that registers the handler of `path`, and watches its data.

    If the znode does not exist, the watch fires when it is created.

    Source: ZkClient.subscribeDataChanges (0.3, 0.10).
    """

    def step(ctx: ControllerContext) -> Handler:
        yield effects.RegisterZNodeHandler(path)
        yield effects.Exists((path,), watch=True)

    return step


def subscribe_child_changes(path: str) -> Step:
    """Return a step that registers the handler of the children of `path`, and watches them.

    If the znode does not exist, the watch fires when it is created.

    Source: ZkClient.subscribeChildChanges (0.3).
    """

    def step(ctx: ControllerContext) -> Handler:
        yield effects.RegisterZNodeHandler(path, children=True)
        yield effects.Exists((path,), watch=True)
        yield effects.Children((path,), watch=True)

    return step


def subscribe_topic_deletions(ctx: ControllerContext) -> Handler:
    """Subscribe to the children of `/admin/delete_topics` if `delete.topic.enable` is true."""
    if ctx.deletes_topics:
        yield from subscribe_child_changes(DELETE_TOPICS)(ctx)


def subscribe_topic_changes(ctx: ControllerContext, topics: Iterable[str] | None = None) -> Handler:
    """Register the handler of each topic's znode, and set a watch on this znode.

    `topics` None means all topics of the context.

    Source: PartitionStateMachine.registerPartitionChangeListener (0.8.1).
    """
    for topic in sorted(ctx.all_topics) if topics is None else topics:
        yield effects.RegisterZNodeHandler(topic_path(topic))
        yield effects.Exists((topic_path(topic),), watch=True)


def delete_log_dir_events(ctx: ControllerContext) -> Handler:
    """Delete the notifications of failed log directories without reading their data.

    Source: LogDirUtils.deleteLogDirEvents (1.0).
    """
    yield from failover_steps.delete_children(LOG_DIR_EVENT_NOTIFICATION)


# ---------------------------------------------------------------- failover


def read_epoch(ctx: ControllerContext) -> Handler:
    """Read `/controller_epoch` into the context; set no watch: no listener exists since 0.8.2."""
    yield from read_controller_epoch(ctx, watch=False)


def initialize_context(ctx: ControllerContext) -> Handler:
    """Read brokers, topics, assignments and leadership from ZooKeeper into the context.

    No topic's handler is registered here: a later step subscribes to the topics.

    Source: KafkaController.initializeControllerContext (0.8.1, 1.0).
    """
    yield from failover_steps.update_cluster_state(ctx, registers_handlers=False)
    yield from failover_steps.update_leader_and_isr_cache(ctx, ctx.assignments)


def initialize_context_and_channels(ctx: ControllerContext) -> Handler:
    """Read brokers, topics and leadership into the context, then open the channels to the brokers.

    From then on this broker is active: from 0.8.0 to 0.10.2 a broker is controller while it has
    channels.

    Source: KafkaController.initializeControllerContext, startChannelManager (0.8.1).
    """
    yield from initialize_context(ctx)
    yield effects.UpdateContext("has_channels", True)


def start_replica_machine(ctx: ControllerContext) -> Handler:
    """Start the partition and replica state machines: from then on they accept transitions.

    Then move the online replicas Online, which sends LeaderAndIsr to their brokers.

    Source: ReplicaStateMachine.startup (0.8.1).
    """
    # The replica of a dead broker is ineligible for deletion (in 0.8.0 Offline).
    online, _ = yield from failover_steps.initialize_replica_states(
        ctx, ReplicaState[ctx.rules.dead_replica_first_state]
    )
    yield effects.UpdateContext("machines_started", True)
    yield from replica_machine.handle_state_changes(ctx, online, ReplicaState.ONLINE)


# ---------------------------------------------------------------- resignation

CLEARED_AT_RESIGNATION = tuple(
    name for name in failover_steps.CLEARED_AT_RESIGNATION if name != "offline_dirs"
)


def stop_machines(ctx: ControllerContext) -> Handler:
    """Stop the partition and replica state machines, which then refuse every transition.

    All states of partitions and replicas are removed from the context.

    Source: PartitionStateMachine.shutdown, ReplicaStateMachine.shutdown (0.8.1).
    """
    if ctx.machines_started:
        yield effects.UpdateContext("machines_started", False)
    yield from failover_steps.clear_fields("partition_states", "replica_states")(ctx)


def await_requests(ctx: ControllerContext, brokers: Iterable[int]) -> Handler:
    """Wait until the live brokers in `brokers` have responded to this controller's requests.

    Do nothing before 0.10.2 and since 2.1.1.

    Source: ControllerChannelManager.removeExistingBroker (0.10.2.2, 2.1.1).
    """
    # In these releases the thread of a channel ends only after the response to its last request;
    # then the channel may be closed.
    known = tuple(broker for broker in brokers if broker in ctx.live_broker_epochs)
    if ctx.rules.awaits_in_flight_requests and known:
        yield effects.AwaitInFlightRequests(known)


def await_all_requests(ctx: ControllerContext) -> Handler:
    """Before a failover goes on, all live brokers have responded (0.10.2 to 2.1.0)."""
    yield from await_requests(ctx, sorted(ctx.live_broker_epochs))


def await_in_flight_requests_on_open_channels(ctx: ControllerContext) -> Handler:
    """Wait until all live brokers have responded to this controller's requests.

    Do nothing if this broker has no channels to brokers, and in releases before 0.10.2.

    Source: ControllerChannelManager.shutdown (0.10.2).
    """
    if ctx.has_channels:
        yield from await_all_requests(ctx)


def close_channels(ctx: ControllerContext) -> Handler:
    """Close the channels: without channels a broker is not active, whatever `/controller` says.

    The requests that wait in the channels are dropped. Source: ControllerChannelManager.shutdown
    (0.8.1).
    """
    if ctx.has_channels:
        yield effects.UpdateContext("has_channels", False)
