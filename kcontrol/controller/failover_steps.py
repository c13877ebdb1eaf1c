"""The steps of a failover and of a resignation: one function for each step.

The tables FAILOVER and RESIGNATION of `event_thread.py` have the order of the steps.

Rules of the file:

* A step is a handler without an event. It reads, registers a handler, starts a machine, or removes
  something from the context.
* A failover reads brokers, topics, assignments and leadership from ZooKeeper, and clears what an
  earlier term of the broker has left in these fields.
* Handlers outside a failover use some of the steps too: `broker_changes.py` reads registrations,
  `topic_changes.py` reads topics, `requested_elections.py` tries elections.
* A resignation writes nothing to ZooKeeper: the broker may have lost its session or its term
  already.

What the file does not say: the order of the steps, and their callers. Read `event_thread.py` for
the order, `controller_election.py` for the callers, and `earlier/failover_steps.py` for steps that
only earlier releases have.

Source: KafkaController.onControllerFailover, initializeControllerContext (2.8) and
onControllerResignation (0.8.2, 1.0, 2.8); ReplicaStateMachine.startup and
PartitionStateMachine.startup (2.8).
"""

from collections.abc import Iterable, Sequence

from kcontrol.controller import partition_machine, replica_machine
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.design import Step
from kcontrol.controller.request_batch import send_update_metadata_request
from kcontrol.core import effects
from kcontrol.core import znodes as zk
from kcontrol.core.effects import Handler
from kcontrol.core.model import PartitionState, ReplicaState, TopicPartition

UNKNOWN_BROKER_EPOCH = -1


def nothing(ctx: ControllerContext) -> Handler:
    """Do nothing; a table has this function in place of a step that its release lacks."""
    yield from ()


def register_handlers(ctx: ControllerContext) -> Handler:
    """Register handlers of brokers, topics, notifications and requests; watch two request znodes.

    The two are `/admin/preferred_replica_election` and `/admin/reassign_partitions`. The later
    reads of a failover set the watches of the other paths.

    Source: KafkaController.onControllerFailover (2.8): registerZNodeChildChangeHandler and
    registerZNodeChangeHandlerAndCheckExistence.
    """
    notifications = zk.LOG_DIR_EVENT_NOTIFICATION, zk.ISR_CHANGE_NOTIFICATION
    for path in (zk.BROKER_IDS, zk.TOPICS, zk.DELETE_TOPICS, *notifications):
        yield effects.RegisterZNodeHandler(path, children=True)
    for path in (zk.PREFERRED_REPLICA_ELECTION, zk.REASSIGN_PARTITIONS):
        yield effects.RegisterZNodeHandler(path)
        yield effects.Exists((path,), watch=True)


def delete_notifications(ctx: ControllerContext) -> Handler:
    """Delete, unread, the notifications of ISR changes and of failed log directories.

    The failover reads the whole state anyway.

    Source: KafkaController.onControllerFailover (2.8).
    """
    for path in (zk.LOG_DIR_EVENT_NOTIFICATION, zk.ISR_CHANGE_NOTIFICATION):
        yield from delete_children(path)


def send_update_metadata(ctx: ControllerContext) -> Handler:
    """Send UpdateMetadata to every broker, without partitions; before 2.2 with all partitions."""
    yield from send_update_metadata_request(ctx, ctx.live_or_shutting_down_broker_ids)


def delete_children(path: str) -> Handler:
    """Delete the children without reading their data, and watch for new ones."""
    (names,) = yield effects.Children((path,), watch=True)
    if names:
        yield from delete_all(tuple(f"{path}/{name}" for name in names))


def delete_all(paths: tuple[str, ...]) -> Handler:
    """Delete each znode of `paths` in a transaction that checks the controller epoch (2.1 on)."""
    yield effects.fenced(*(effects.Op("delete", path) for path in paths))


def enable_feature_versioning(ctx: ControllerContext) -> Handler:
    """Create `/feature` if it is missing and the inter-broker protocol is 2.7 or later.

    Source: KafkaController.enableFeatureVersioning (2.8).
    """
    if not ctx.rules.features:
        return
    (znode,) = yield effects.Read((zk.FEATURE,))
    if znode is None:
        yield effects.Transaction(
            (effects.Op("create", zk.FEATURE, zk.encode_feature(1, ctx.rules.feature_znode)),)
        )
        yield effects.Read((zk.FEATURE,))


def initialize_context(ctx: ControllerContext) -> Handler:
    """Read brokers, topics, assignments and leadership from ZooKeeper into the context.

    Values that an earlier term of this broker has left there are removed.

    Source: KafkaController.initializeControllerContext (2.8).
    """
    yield from update_cluster_state(ctx, registers_handlers=True)
    yield from register_broker_modifications_handlers(ctx.live_or_shutting_down_broker_ids)
    yield from update_leader_and_isr_cache(ctx, ctx.assignments)


def update_cluster_state(ctx: ControllerContext, *, registers_handlers: bool) -> Handler:
    """Read brokers, topics and assignments from ZooKeeper into the context.

    Clear the leadership of partitions and the set of brokers that are shutting down. If
    `registers_handlers`, register the handler of each topic's znode.
    """
    yield from update_live_brokers(ctx)
    (names,) = yield effects.Children((zk.TOPICS,), watch=True)
    yield effects.UpdateContext("all_topics", names or (), clear=True)
    yield effects.UpdateContext("assignments", clear=True)
    yield from update_topics(ctx, names or (), registers_handlers=registers_handlers)
    moving = {tp: a.target for tp, a in ctx.assignments.items() if a.is_being_reassigned}
    if moving:
        yield effects.UpdateContext("partitions_being_reassigned", moving)
    yield effects.UpdateContext("leadership", clear=True)
    yield effects.UpdateContext("shutting_down_broker_ids", clear=True)


def register_broker_modifications_handlers(brokers: Iterable[int]) -> Handler:
    """Register the handler of each of these brokers' znodes, and watch the znode.

    The data of the znode change with the broker's endpoint.

    Source: KafkaController.registerBrokerModificationsHandler (2.8).
    """
    for broker_id in brokers:
        yield effects.RegisterZNodeHandler(zk.broker_path(broker_id))
        yield effects.Exists((zk.broker_path(broker_id),), watch=True)


def update_live_brokers(ctx: ControllerContext) -> Handler:
    """Read `/brokers/ids` again; store the registered brokers and their epochs in the context."""
    brokers, epochs = yield from read_brokers(ctx)
    yield effects.UpdateContext("live_brokers", brokers, clear=True)
    yield effects.UpdateContext("live_broker_epochs", epochs, clear=True)


def read_brokers(ctx: ControllerContext) -> Handler:
    """Return two dicts of all registered brokers: the endpoints and the broker epochs, by id."""
    (names,) = yield effects.Children((zk.BROKER_IDS,), watch=True)
    return (yield from read_registrations(ctx, sorted(int(name) for name in names or ())))


def read_registrations(ctx: ControllerContext, ids: Sequence[int]) -> Handler:
    """Return two dicts of the registered brokers among `ids`: endpoints and broker epochs, by id.

    A broker epoch is the czxid of the registration, -1 before 2.2.

    Source: KafkaZkClient.getAllBrokerAndEpochsInCluster (2.8).
    """
    znodes = (yield effects.Read(tuple(map(zk.broker_path, ids)))) if ids else ()
    found = {broker: znode for broker, znode in zip(ids, znodes, strict=True) if znode}
    epochs = dict.fromkeys(found, UNKNOWN_BROKER_EPOCH)
    if ctx.rules.broker_epochs:
        epochs = {b: z.stat.czxid for b, z in found.items()}
    return {b: zk.decode_broker(z.data) for b, z in found.items()}, epochs


def update_topics(
    ctx: ControllerContext, topics: Iterable[str], *, registers_handlers: bool = True
) -> Handler:
    """Read assignments and ids of these topics into the context, and return the partitions.

    A topic without a znode is left out. If `registers_handlers`, register the handler of each topic
    znode.
    """
    topics = tuple(topics)
    for topic in topics if registers_handlers else ():
        yield effects.RegisterZNodeHandler(zk.topic_path(topic))
    if not topics:
        return ()
    znodes = yield effects.Read(tuple(map(zk.topic_path, topics)), watch=registers_handlers)
    found = zk.decode_topics(topics, znodes)
    assignments = {tp: a for t, value in found.items() for tp, a in value.assignments(t).items()}
    if any(value.topic_id for value in found.values()) or registers_handlers:
        yield effects.UpdateContext(
            "topic_ids", {topic: value.topic_id for topic, value in found.items() if value.topic_id}
        )
    yield effects.UpdateContext("assignments", assignments)
    return tuple(assignments)


def update_leader_and_isr_cache(
    ctx: ControllerContext, partitions: Iterable[TopicPartition]
) -> Handler:
    """Read the state znodes of these partitions into the context.

    Nothing is stored for a partition without a state znode. Source:
    KafkaController.updateLeaderAndIsrCache (2.8).
    """
    partitions = tuple(partitions)
    if not partitions:
        return
    znodes = yield effects.Read(tuple(map(zk.state_path, partitions)))
    yield effects.UpdateContext("leadership", zk.decode_states(partitions, znodes))


def start_replica_machine(ctx: ControllerContext) -> Handler:
    """Set online replicas Online, and all other replicas ineligible for deletion.

    The brokers of the online replicas get LeaderAndIsr. Since 2.3 the other replicas leave the ISRs
    (KAFKA-7836).

    Source: ReplicaStateMachine.startup (2.8).
    """
    online, offline = yield from initialize_replica_states(ctx, ReplicaState.DELETION_INELIGIBLE)
    yield from replica_machine.handle_state_changes(ctx, online, ReplicaState.ONLINE)
    if ctx.rules.offline_at_startup:
        yield from replica_machine.handle_state_changes(ctx, offline, ReplicaState.OFFLINE)


def initialize_replica_states(ctx: ControllerContext, offline_state: ReplicaState) -> Handler:
    """Set each replica on a live broker Online and every other replica to `offline_state`.

    The table of legal transitions does not apply. Return two lists: the Online replicas and the
    other replicas.

    Source: ReplicaStateMachine.initializeReplicaState (2.8).
    """
    everything = ctx.replicas_of(ctx.assignments)
    online = [r for r in everything if ctx.is_replica_online(r.broker_id, r.topic_partition)]
    offline = [r for r in everything if not ctx.is_replica_online(r.broker_id, r.topic_partition)]
    states = dict.fromkeys(online, ReplicaState.ONLINE) | dict.fromkeys(offline, offline_state)
    if states:
        yield effects.UpdateContext("replica_states", states)
    return online, offline


def start_partition_machine(ctx: ControllerContext) -> Handler:
    """Set the first state of each partition; then elect leaders of New and Offline partitions.

    A partition without leadership is New, with an online leader Online, otherwise Offline.

    Source: PartitionStateMachine.startup (2.8).
    """
    if ctx.assignments:
        yield effects.UpdateContext(
            "partition_states", {tp: _first_state(ctx, tp) for tp in ctx.assignments}
        )
    yield from trigger_online_partition_state_change(ctx)


def _first_state(ctx: ControllerContext, tp: TopicPartition) -> PartitionState:
    """Return the state of a partition at the begin of a failover.

    New without leadership, Online if the leader is online, Offline if the leader is not online.
    Source: PartitionStateMachine.initializePartitionState (2.8).
    """
    value = ctx.leadership.get(tp)
    if value is None:
        return PartitionState.NEW
    is_led = ctx.is_replica_online(value.leader, tp)
    return PartitionState.ONLINE if is_led else PartitionState.OFFLINE


def trigger_online_partition_state_change(
    ctx: ControllerContext, topic: str | None = None
) -> Handler:
    """Try to elect leaders of Offline and New partitions; return the new leadership by partition.

    `topic` names one topic, None means all topics. Topics that are being deleted are left out.

    Source: PartitionStateMachine.triggerOnlinePartitionStateChange (2.8).
    """
    waiting = ctx.partitions_in(PartitionState.OFFLINE, PartitionState.NEW)
    named = (tp for tp in waiting if topic in (None, tp.topic))
    alive = [tp for tp in named if not ctx.is_queued_for_deletion(tp.topic)]
    moved = yield from partition_machine.handle_state_changes(
        ctx, alive, PartitionState.ONLINE, "offline"
    )
    return moved.elected


# ---------------------------------------------------------------- resignation

CLEARED_AT_RESIGNATION = (
    "live_brokers", "live_broker_epochs", "shutting_down_broker_ids", "all_topics", "topic_ids",
    "assignments", "leadership", "partition_states", "replica_states", "topics_to_be_deleted",
    "partitions_being_reassigned", "topics_with_deletion_started", "topics_ineligible_for_deletion",
    "offline_dirs",
)  # fmt: skip


def unregister_handler(path: str, *, children: bool = False) -> Step:
    """ZooKeeper keeps the path's watch until it fires."""

    def step(ctx: ControllerContext) -> Handler:
        yield effects.UnregisterZNodeHandler(path, children)

    return step


def unregister_broker_handlers(ctx: ControllerContext) -> Handler:
    for broker_id in sorted(ctx.live_brokers):
        yield effects.UnregisterZNodeHandler(zk.broker_path(broker_id))


def unregister_topic_handlers(ctx: ControllerContext) -> Handler:
    for topic in sorted(ctx.all_topics):
        yield effects.UnregisterZNodeHandler(zk.topic_path(topic))


def unregister_reassignment_handlers(ctx: ControllerContext) -> Handler:
    if not ctx.rules.alter_isr:
        for tp in sorted(ctx.partitions_being_reassigned):
            yield effects.UnregisterZNodeHandler(zk.state_path(tp))


def stop_rebalancing(ctx: ControllerContext) -> Handler:
    yield effects.CancelTimer("auto-leader-rebalance")


def clear_fields(*names: str) -> Step:
    """Return a step of a failover or resignation that empties these fields of the context."""

    def step(ctx: ControllerContext) -> Handler:
        for name in names:
            if getattr(ctx, name):
                yield effects.UpdateContext(name, clear=True)

    return step


def reset_epochs(ctx: ControllerContext) -> Handler:
    yield effects.UpdateContext("controller_epoch", 0)
    yield effects.UpdateContext("controller_epoch_zk_version", 0)


# ---------------------------------------------------------------- a handler with a last step


def try_finally(handler: Handler, cleanup: Handler) -> Handler:
    """Run `handler`, then `cleanup`, even if `handler` raises; return or raise as `handler` did."""
    # A plain `finally` must not yield: Python closes the suspended handler of a process that dies,
    # and a closed generator may not yield again.
    try:
        result = yield from handler
    except Exception:
        yield from cleanup
        raise
    yield from cleanup
    return result
