"""Sends the requests of consumers to their group coordinators, and changes the consumers' states by the responses.

A consumer finds its coordinator, the leader of a partition of `__consumer_offsets`, in the brokers' metadata.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

from kcontrol.broker.broker_configs import LARGEST_INT
from kcontrol.broker.context import BrokerContext
from kcontrol.cluster import admin_actions, consumer_protocol
from kcontrol.cluster.consumer_configs import INSTANCE_ID, SESSION_MS, ConsumerConfig
from kcontrol.cluster.consumer_state import CLOSED, FROZEN, POLLING, STABLE, UNREADABLE, Consumer, after_response
from kcontrol.cluster.delivery import begin_if_idle, is_reachable
from kcontrol.cluster.run_settings import Settings
from kcontrol.core.model import TopicPartition
from kcontrol.core.releases import is_since
from kcontrol.group import events as e
from kcontrol.group.context import GroupConfig, GroupContext
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC, partition_for
from kcontrol.group.handlers import REQUESTS
from kcontrol.group.request_reactions import has_reaction
from kcontrol.journal.journal import RecordId, to_json

if TYPE_CHECKING:
    from kcontrol.cluster.world import World

REQUESTED = ("join", "sync", "heartbeat", "leave")
"""The requests of a consumer to its coordinator; `fault_actions` lists them."""
NOT_AVAILABLE = "COORDINATOR_NOT_AVAILABLE"
LARGEST_SHORT, LARGEST_LONG = 2**15 - 1, 2**63 - 1


class FindCoordinatorResult(NamedTuple):
    """The response to FindCoordinator: `error`, "NONE" or a name such as "COORDINATOR_NOT_AVAILABLE", and the coordinator."""

    error: str
    # The id of the coordinator, -1 after an error.
    broker: int


def config(settings: Settings) -> GroupConfig:
    """The release's defaults with `settings.group_config`; one offsets partition unless it names `partitions`."""
    return GroupConfig.of(settings.release, **({"partitions": 1} | dict(settings.group_config)))


def context(settings: Settings) -> GroupContext | None:
    """Return the memory of a broker's group coordinator at its start, without groups; None if the settings name no consumers."""
    if not settings.consumers:
        return None
    rules = settings.group_rules()
    return GroupContext(rules, config(settings), changes=settings.changes, logs_operations=settings.purgatory)


def consumer_config(settings: Settings, name: str) -> ConsumerConfig:
    """Return the settings of the consumer `name`: the values that `settings.consumer_configs` has for it, else the defaults."""
    return ConsumerConfig(settings.release, settings.consumer_configs.get(name, {}))


def consumers(settings: Settings) -> dict[str, Consumer]:
    """Return a dict from the name of each consumer of a run to the consumer's state before its first request."""
    configs = settings.consumer_configs
    return {
        name: Consumer(group, instance_id=configs.get(name, {}).get(INSTANCE_ID)) for name, group in settings.consumers.items()
    }


# ---------------------------------------------------------------- the coordinator of a consumer


def coordinator(world: World, group: str) -> int | None:
    """As the running brokers' metadata say, in the order of broker ids: the first coordinator that is reachable."""
    known = [broker for n in sorted(world.processes) if (broker := named_by(world, n, group)) is not None]
    return next((leader for leader in known if is_reachable(world, leader)), None)


def named_by(world: World, broker: int, group: str) -> int | None:
    """The coordinator as `broker` knows it. None: it does not know the partition; -1: it knows no leader."""
    tp = TopicPartition(OFFSETS_TOPIC, partition_for(group, config(world.settings).partitions))
    metadata = world.processes[broker].driver.broker.metadata
    return metadata[tp].leader if tp in metadata else None


def receiver(world: World, consumer: Consumer) -> int | None:
    """The consumer's last coordinator while its process is connected, else one that a broker's metadata name."""
    if consumer.coordinator is not None and is_connected(world, consumer.coordinator):
        return consumer.coordinator[0]
    return coordinator(world, consumer.group)


def is_connected(world: World, process: tuple[int, int]) -> bool:
    """Return whether `process`, (broker, incarnation), runs and is not frozen; incarnation 2 is the broker's second start."""
    return is_reachable(world, process[0]) and world.processes[process[0]].driver.incarnation == process[1]


# ---------------------------------------------------------------- requests of consumers


def can_ask(world: World, name: Any, broker: object = None) -> bool:
    """Whether the consumer can send a request to `broker`, by default to its coordinator."""
    return is_consumer(world, name) and can_send(world, world.consumers[name], broker)


def can_expire_poll(world: World, name: Any) -> bool:
    """A poll can time out only for a member whose client has max.poll.interval.ms."""
    return can_ask(world, name) and bool(world.consumers[name].member_id) and has_poll_timeout(world, name)


def is_number(value: object, minimum: int = 0, maximum: int = LARGEST_LONG) -> bool:
    """Return whether an argument of an action is an int (no bool) from `minimum` to `maximum`."""
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum


def is_string(value: object) -> bool:
    """Return whether a value can be a string of Kafka's protocol: text of at most LARGEST_SHORT bytes of UTF-8."""
    return isinstance(value, str) and len(value.encode()) <= LARGEST_SHORT


def can_send(world: World, consumer: Consumer, broker: Any = None) -> bool:
    """A consumer that is frozen, or that waits for a response, can send nothing."""
    reachable = receiver(world, consumer) is not None if broker is None else is_number(broker) and is_reachable(world, broker)
    return consumer.asked is None and consumer.condition != FROZEN and reachable


def has_poll_timeout(world: World, name: str) -> bool:
    """Return whether the release of the consumer's client has max.poll.interval.ms (since 0.10.1, KIP-62)."""
    return is_since("0.10.1", consumer_config(world.settings, name).release)


def is_consumer(world: World, name: object) -> bool:
    """Return whether there is a consumer of this name."""
    return isinstance(name, str) and name in world.consumers


def can_commit(world: World, name: str, partition: str, offset: Any, metadata: Any = "") -> bool:
    """Raises ValueError for a wrong partition, text or number."""
    tp = TopicPartition.parse(partition)
    is_written = str(tp) == partition and is_string(tp.topic) and 0 <= tp.partition <= LARGEST_INT
    if not is_written or not is_string(metadata) or not is_number(offset):
        raise ValueError
    return can_ask(world, name)


def restart(world: World, name: str) -> None:
    note(world, name, world.consumers[name].without_membership(), world.log("act", None, action=["restart", name]))


def expire_poll(world: World, name: str) -> None:
    """A static member forgets its member id, and sends nothing.

    Source: HeartbeatThread.run and maybeLeaveGroup of AbstractCoordinator.java (0.10.1, 2.8).
    """
    consumer, action = world.consumers[name], ["expire_poll_interval", name]
    if consumer.instance_id is not None:
        note(world, name, consumer.after_loss(consumer.error), world.log("act", None, action=action))
    else:
        _send(world, name, consumer, _leave(consumer, f"consumer {name} {consumer.requests + 1}"), action)


def send_request(world: World, request: str, name: str, broker: int | None = None) -> None:
    """Send `request`, one of REQUESTED, to `broker`, by default to the coordinator.

    Source: onJoinLeader of AbstractCoordinator.java (0.9, 2.8).
    """
    consumer, action = world.consumers[name], [request, name, *(() if broker is None else (broker,))]
    config, id = consumer_config(world.settings, name), f"consumer {name} {consumer.requests + 1}"
    match request:
        case "join":
            consumer = consumer._replace(condition=POLLING if consumer.condition == CLOSED else consumer.condition)
            consumer = consumer if config.is_cooperative else consumer._replace(assignment=b"")
            event: Any = _join(world, name, consumer, config, id)
        case "sync":
            leads = consumer.member_id == consumer.leader and bool(consumer.members)
            instances = {other.member_id: other.instance_id for other in world.consumers.values()} if leads else {}
            try:
                assignor = world.settings.changes.strategies.get(consumer_protocol.OWN_ASSIGNOR)
                assigned = consumer_protocol.assign(consumer, config, _topics(world), instances, assignor) if leads else {}
            # A leader that cannot read a subscription sends nothing: its poll fails.
            except ValueError:
                cause = world.log("act", None, action=action, error=UNREADABLE)
                note(world, name, consumer.after_failed_read(world.clock(), rejoin_needed=True), cause)
                return
            event = e.SyncGroup(id, consumer.group, consumer.member_id, consumer.generation, assigned, consumer.instance_id)
        case "heartbeat":
            event = e.Heartbeat(id, consumer.group, consumer.member_id, consumer.generation, consumer.instance_id)
        case _:
            event = _leave(consumer, id)
    _send(world, name, consumer, event, action, broker)


def _leave(consumer: Consumer, correlation_id: str) -> e.LeaveGroup:
    return e.LeaveGroup(correlation_id, consumer.group, (e.MemberIdentity(consumer.member_id, consumer.instance_id),))


def _join(world: World, name: str, consumer: Consumer, config: ConsumerConfig, correlation_id: str) -> e.JoinGroup:
    """The client's release decides the offered assignors, and whether it understands MEMBER_ID_REQUIRED."""
    member_suffix = random.Random(f"{world.settings.seed}/{name}/{consumer.requests}").getrandbits(128)
    requires_known_id = has_reaction(config.release, "MEMBER_ID_REQUIRED")
    ids: tuple[Any, ...] = (consumer.instance_id, name, "/127.0.0.1", f"{member_suffix:032x}", requires_known_id)
    offered = consumer_protocol.protocols(consumer, config, _topics(world))
    timeouts = config[SESSION_MS], config.rebalance_timeout_ms
    return e.JoinGroup(correlation_id, consumer.group, consumer.member_id, *timeouts, "consumer", offered, *ids)


def commit(world: World, name: str, partition: str, offset: int, metadata: str = "") -> None:
    """Send OffsetCommit for one partition, such as "t-0", from the consumer `name` to the group's coordinator.

    The request has the consumer's member id and generation.
    """
    consumer, id = world.consumers[name], f"consumer {name} {world.consumers[name].requests + 1}"
    offsets = {TopicPartition.parse(partition): e.CommittedOffset(offset, metadata)}
    who = consumer.member_id, consumer.generation
    event = e.OffsetCommit(id, consumer.group, *who, offsets, consumer.instance_id)
    _send(world, name, consumer, event, ["commit", name, partition, offset, *((metadata,) if metadata else ())])


def _topics(world: World) -> dict[str, int]:
    """The number of partitions by topic, as far as any broker's metadata know them."""
    known = {tp for p in world.processes.values() for tp in p.driver.broker.metadata if tp.topic != OFFSETS_TOPIC}
    return {topic: sum(tp.topic == topic for tp in known) for topic in {tp.topic for tp in known}}


def _send(world: World, name: str, consumer: Consumer, event: Any, action: list[Any], broker: int | None = None) -> None:
    """Send the request `event` of the consumer `name`, whose state is `consumer`, to its coordinator, or to `broker` if given.

    Store the receiver as the consumer's coordinator, unless `broker` is given.
    """
    chosen = receiver(world, consumer) if broker is None else broker
    assert chosen is not None
    driver = world.processes[chosen].driver
    process = chosen, driver.incarnation
    cause = world.log("act", None, action=action)
    known = process if broker is None else consumer.coordinator
    now = consumer._replace(requests=consumer.requests + 1, asked=process, coordinator=known, active_at_ms=world.clock())
    note(world, name, now, cause)
    driver.enqueue(event, cause)
    begin_if_idle(world, chosen, REQUESTS)


def note(world: World, name: str, now: Consumer, cause: RecordId | None) -> None:
    """Store `now` as the state of the consumer `name`, and add a `consumer` record with this state and cause to the journal."""
    world.consumers[name] = now
    world.log("consumer", cause, name=name, now=now)


def record_response(world: World, correlation_id: str, body: Any, record: RecordId) -> bool:
    """Apply the response `body` to the consumer that sent the request; return False if no consumer sent the request.

    `record` is the journal record `respond`.
    """
    if not correlation_id.startswith("consumer "):
        return False
    name, number = correlation_id.removeprefix("consumer ").rsplit(" ", 1)
    consumer = world.consumers[name]
    if consumer.asked is not None and int(number) == consumer.requests:  # otherwise the process that sent the request has ended
        is_sync = isinstance(body, e.SyncResult)
        now = _after_sync(world, name, consumer, body) if is_sync else after_response(consumer, body, has_lost_partitions=False)
        note(world, name, now._replace(active_at_ms=world.clock()), record)
    return True


def _after_sync(world: World, name: str, consumer: Consumer, body: e.SyncResult) -> Consumer:
    """An assignment that the consumer cannot read makes its poll fail."""
    if body.error == "NONE" and not consumer_protocol.is_assignment(body.assignment):
        now = consumer._replace(asked=None, state=STABLE)
        return now.after_failed_read(world.clock(), rejoin_needed=not has_poll_timeout(world, name))
    is_cooperative = consumer_config(world.settings, name).is_cooperative
    return after_response(consumer, body, has_lost_partitions=is_cooperative and _revokes(consumer, body))


def _revokes(consumer: Consumer, body: e.SyncResult) -> bool:
    """Return whether the assignment in the response to SyncGroup lacks partitions that the consumer owns."""
    return bool(set(consumer_protocol.partitions(consumer.assignment)) - set(consumer_protocol.partitions(body.assignment)))


# ---------------------------------------------------------------- a consumer looks for its coordinator


def can_find(world: World, name: str, broker: object) -> bool:
    """Return whether the consumer `name` exists and can send FindCoordinator to a broker now (`can_send`)."""
    return is_number(broker) and is_consumer(world, name) and can_send(world, world.consumers[name], broker)


def find_coordinator(world: World, name: str, broker: int) -> None:
    """Send FindCoordinator to a broker; the consumer then uses the coordinator in the metadata of this broker.

    Source: handleFindCoordinatorRequest of KafkaApis.scala (2.8), handleGroupCoordinatorRequest (0.9).
    """
    consumer, driver = world.consumers[name], world.processes[broker].driver
    cause = world.log("act", None, action=["find_coordinator", name, broker])
    leader = named_by(world, broker, consumer.group)
    admin_actions.create_offsets_topic(world, broker, cause)
    is_up = leader is not None and leader in world.processes
    # COORDINATOR_NOT_AVAILABLE if the metadata name no leader, or one that does not run.
    body = FindCoordinatorResult("NONE", leader) if is_up and leader is not None else FindCoordinatorResult(NOT_AVAILABLE, -1)
    number = consumer.requests + 1
    answer = driver.log("respond", cause, correlation_id=f"consumer {name} {number}", body=body)
    found = None if body.error == NOT_AVAILABLE else (body.broker, world.processes[body.broker].driver.incarnation)
    now = consumer._replace(coordinator=found, requests=number, error=body.error)
    note(world, name, now._replace(active_at_ms=world.clock()), answer)


# ---------------------------------------------------------------- changes of coordinators


def update_coordinators(world: World) -> None:
    """Queue PartitionElected at each new leader of a partition of the offsets topic, PartitionResigned at its former leader.

    Store the error "disconnected" in consumers that wait for a response of an ended process.
    """
    for n, p in sorted(world.processes.items()):
        if p.driver.group is None:
            continue
        hosted = p.driver.broker.hosted
        leads = {tp: held for tp, held in hosted.items() if tp.topic == OFFSETS_TOPIC and held.leadership.leader == n}
        if leads.keys() == p.coordinated_partitions:
            continue
        stopped = {tp for tp in p.coordinated_partitions - hosted.keys() if _keeps_log(p.driver.broker, tp)}
        cause = p.driver.journal.since(len(p.driver.journal) - 1)[0].id
        for tp in sorted(leads.keys() - p.coordinated_partitions):
            epoch = leads[tp].leadership.leader_epoch
            p.driver.enqueue(e.PartitionElected(tp.partition, epoch), cause)
        for tp in sorted(p.coordinated_partitions - leads.keys() - stopped):
            held = hosted.get(tp)
            if held or _resigns(p.driver.group, p.driver.broker, tp):
                p.driver.enqueue(e.PartitionResigned(tp.partition, held.leadership.leader_epoch if held else None), cause)
        p.coordinated_partitions = frozenset(leads) | stopped
    for name, consumer in world.consumers.items() if any(r.kind == "stop" for r in world.last_step) else ():
        # The coordinator's process has ended without a response: the connection of the consumer is closed.
        broker, incarnation = consumer.asked or (-1, 0)
        if consumer.asked and (broker not in world.processes or world.processes[broker].driver.incarnation != incarnation):
            note(world, name, consumer._replace(asked=None, coordinator=None, error="disconnected"), None)


def _keeps_log(broker: BrokerContext, tp: TopicPartition) -> bool:
    """Return whether a broker has the log of a partition in a log directory that works.

    Source: handleStopReplicaRequest of KafkaApis.scala (1.0, 2.8).
    """
    return tp in broker.logs and tp not in broker.offline_partitions


def _resigns(group: GroupContext, broker: BrokerContext, tp: TopicPartition) -> bool:
    """Return whether a coordinator drops the groups of `tp` after its broker has lost the replica of `tp`.

    `tp` is a partition of the offsets topic.

    Source: handleStopReplicaRequest of KafkaApis.scala (0.9, 0.11, 2.8), handleLogDirFailure of ReplicaManager.scala (1.0, 2.8).
    """
    # Since 0.11, but not if the log directory has failed: then the coordinator stays, and every append fails.
    return group.rules.resigns_without_replica and tp not in broker.offline_partitions


def snapshot(world: World) -> dict[str, Any]:
    """Return {"consumers": {name: state of the consumer}} in JSON's types; {} in a world without consumers."""
    if not world.settings.consumers:
        return {}
    return {"consumers": {name: to_json(consumer) for name, consumer in world.consumers.items()}}
