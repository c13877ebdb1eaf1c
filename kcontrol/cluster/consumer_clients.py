"""Consumers and their group coordinators, where the settings name consumers.

A group's coordinator is the broker that leads the group's partition of `__consumer_offsets`, a topic like any other. The log of
such a partition exists once, as if all replicas had each record at once. A broker cannot append any more after a broker with a
later leader epoch has become coordinator. The acknowledgement of an append is an event, so other events may be handled before
it.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from kcontrol.cluster.delivery import begin_if_idle, is_reachable
from kcontrol.cluster.run_settings import Settings
from kcontrol.core.effects import Append, LogBatch
from kcontrol.core.model import TopicPartition
from kcontrol.driver.driver import Driver
from kcontrol.group import events as e
from kcontrol.group.assignors import Subscription
from kcontrol.group.context import GroupConfig, GroupContext
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC, partition_for
from kcontrol.group.handlers import REQUESTS
from kcontrol.group.model import GroupProtocol
from kcontrol.group.offsets_topic_records import encode, topics_of
from kcontrol.group.request_reactions import has_reaction
from kcontrol.group.sticky import ASSIGNORS
from kcontrol.journal.journal import RecordId, to_json

if TYPE_CHECKING:
    from kcontrol.cluster.world import World

SESSION_MS, REBALANCE_MS = 10_000, 60_000
PROTOCOLS = ("range", "roundrobin")
REQUESTED = ("join", "sync", "heartbeat", "leave")
"""The requests of a consumer to its coordinator; `fault_actions` lists them."""
RESTART, POLL_TIMEOUT = "restart", "poll timeout"
"""The actions on a consumer's own process."""


class Consumer(NamedTuple):
    """One consumer's view of its group. `asked` is the broker whose response the consumer waits for, with its incarnation."""

    group: str
    member_id: str = ""
    generation: int = -1
    leader: str = ""
    protocol: str = ""
    members: tuple[tuple[str, bytes], ...] = ()
    assignment: bytes = b""
    error: str = ""
    requests: int = 0
    asked: tuple[int, int] | None = None
    instance_id: str | None = None

    def without_membership(self) -> Consumer:
        """Return the consumer without its member id, as if it had never joined."""
        return Consumer(self.group, requests=self.requests, instance_id=self.instance_id)


def config(settings: Settings) -> GroupConfig:
    """Return the coordinators' settings; the offsets topic has one partition unless the settings say otherwise."""
    return GroupConfig.of(settings.release, **({"partitions": 1} | dict(settings.group_config)))


def context(settings: Settings) -> GroupContext | None:
    """Return the group context of a broker that has just started, None in a world without consumers."""
    return GroupContext(settings.group_rules(), config(settings), changes=settings.changes) if settings.consumers else None


def consumers(settings: Settings) -> dict[str, Consumer]:
    """Return the consumers of a run before their first request."""
    return {name: Consumer(group, instance_id=settings.instance_ids.get(name)) for name, group in settings.consumers.items()}


# ---------------------------------------------------------------- requests of consumers


def coordinator(world: World, group: str) -> int | None:
    """Return the coordinator of a group as the brokers' metadata name it, None if there is none or it is not reachable."""
    tp = TopicPartition(OFFSETS_TOPIC, partition_for(group, config(world.settings).partitions))
    known = [p.driver.broker.metadata[tp].leader for _, p in sorted(world.processes.items()) if tp in p.driver.broker.metadata]
    return next((leader for leader in known if is_reachable(world, leader)), None)


def can_ask(world: World, name: str, request: str) -> bool:
    """Return whether a consumer can send this request now. Raises ValueError for an unknown request.

    A request needs a reachable coordinator, and no earlier request without a response. A process can be restarted at any time.
    """
    if request not in (*REQUESTED, RESTART, POLL_TIMEOUT) or not isinstance(name, str):
        raise ValueError
    me = world.consumers.get(name)
    if me is None or request == RESTART:
        return me is not None
    if request == POLL_TIMEOUT and not (me.member_id and has_poll_timeout(world)):
        return False
    return me.asked is None and coordinator(world, me.group) is not None


def has_poll_timeout(world: World) -> bool:
    """Return whether consumers of the release have max.poll.interval.ms (0.10.1, KIP-62)."""
    return world.settings.group_rules().rebalance_timeouts


def can_commit(world: World, name: str, partition: str, offset: int) -> bool:
    """Check the form of a commit and return `can_ask`. Raises ValueError if the form is wrong."""
    TopicPartition.parse(partition)
    return can_ask(world, name, "join") and isinstance(offset, int)


def send_request(world: World, name: str, request: str) -> None:
    """Send a request of REQUESTED with the values of the consumer's view; with `sync` a group's leader sends the assignment.

    A restarted process has lost its member id, and sends nothing before it joins again. After a poll timeout a consumer sends
    LeaveGroup, but a static member sends nothing; both lose their membership. Source: HeartbeatThread.run and maybeLeaveGroup
    of AbstractCoordinator.java (0.10.1, 2.8).
    """
    me = world.consumers[name]
    if request == RESTART or (request == POLL_TIMEOUT and me.instance_id is not None):
        _note(world, name, me.without_membership(), world.log("act", None, action=["consumer", name, request]))
        return
    match request:
        case "join":
            known = has_reaction(world.settings.release, "MEMBER_ID_REQUIRED")
            topics = encode("subscription", 0, {"topics": sorted(_topics(world)), "user_data": None})
            protocols = tuple(GroupProtocol(protocol, topics) for protocol in PROTOCOLS)
            member_suffix = random.Random(f"{world.settings.seed}/{name}/{me.requests}").getrandbits(128)
            ids = (me.instance_id, name, "/127.0.0.1", f"{member_suffix:032x}", known)
            id = _next(name, me)
            _send(world, name, e.JoinGroup(id, me.group, me.member_id, SESSION_MS, REBALANCE_MS, "consumer", protocols, *ids))
        case "sync":
            assigned = _assign(world, me) if me.member_id == me.leader else {}
            _send(world, name, e.SyncGroup(_next(name, me), me.group, me.member_id, me.generation, assigned, me.instance_id))
        case "heartbeat":
            _send(world, name, e.Heartbeat(_next(name, me), me.group, me.member_id, me.generation, me.instance_id))
        case _:
            leaving = e.MemberIdentity(me.member_id, me.instance_id)
            _send(world, name, e.LeaveGroup(_next(name, me), me.group, (leaving,)))


def commit(world: World, name: str, partition: str, offset: int) -> None:
    """Send the commit of one offset for a consumer."""
    me = world.consumers[name]
    offsets = {TopicPartition.parse(partition): e.CommittedOffset(offset)}
    _send(world, name, e.OffsetCommit(_next(name, me), me.group, me.member_id, me.generation, offsets, me.instance_id))


def _next(name: str, me: Consumer) -> str:
    return f"consumer {name} {me.requests + 1}"


def _assign(world: World, me: Consumer) -> dict[str, bytes]:
    """Return the assignment that a group's leader makes with the group's protocol: the partitions of each member by member id."""
    members = {id: Subscription(tuple(sorted(topics_of(metadata) or ()))) for id, metadata in me.members}
    assigned = ASSIGNORS[me.protocol](_topics(world), members) if me.members else {}
    return {
        id: encode(
            "assignment", 0, {"partitions": [{"topic": tp.topic, "partitions": [tp.partition]} for tp in tps], "user_data": None}
        )
        for id, tps in assigned.items()
    }


def _topics(world: World) -> dict[str, int]:
    """Return the number of partitions of each topic in the brokers' metadata, without the offsets topic."""
    known = {tp for p in world.processes.values() for tp in p.driver.broker.metadata if tp.topic != OFFSETS_TOPIC}
    return {topic: sum(tp.topic == topic for tp in known) for topic in {tp.topic for tp in known}}


def _send(world: World, name: str, event: Any) -> None:
    me = world.consumers[name]
    chosen = coordinator(world, me.group)
    assert chosen is not None
    driver = world.processes[chosen].driver
    cause = world.log("act", None, action=["consumer", name, event.name])
    _note(world, name, me._replace(requests=me.requests + 1, asked=(chosen, driver.incarnation)), cause)
    driver.enqueue(event, cause)
    begin_if_idle(world, chosen, REQUESTS)


def _note(world: World, name: str, now: Consumer, cause: RecordId | None) -> None:
    world.consumers = {**world.consumers, name: now}
    world.log("consumer", cause, name=name, now=now)


# ---------------------------------------------------------------- responses to consumers


def record_response(world: World, correlation_id: str, body: Any, record: RecordId) -> bool:
    """Deliver a response to its consumer. Return False if the response is not for a consumer."""
    if not correlation_id.startswith("consumer "):
        return False
    name, number = correlation_id.removeprefix("consumer ").rsplit(" ", 1)
    me = world.consumers[name]
    if me.asked is not None and int(number) == me.requests:  # otherwise the process that sent the request has ended
        _note(world, name, after_response(me, body), record)
    return True


def after_response(me: Consumer, body: Any) -> Consumer:
    """Return a consumer after a response: an unknown member loses its id, a member with an old generation its generation."""
    error = body.error
    if isinstance(body, e.ErrorsResult):
        error = next(iter(body.errors.values()))
    if isinstance(body, e.LeaveResult) and body.members:
        error = body.members[0]
    me = me._replace(error=error, asked=None)
    if error in ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID") or (isinstance(body, e.LeaveResult) and error == "NONE"):
        return me.without_membership()._replace(error=error, protocol=me.protocol)
    if error == "ILLEGAL_GENERATION":
        return me._replace(generation=-1)
    if isinstance(body, e.JoinResult) and error in ("NONE", "MEMBER_ID_REQUIRED"):
        me = me._replace(member_id=body.member_id, generation=body.generation, leader=body.leader)
        return me._replace(protocol=body.protocol, members=body.members, assignment=b"")
    if isinstance(body, e.SyncResult) and error == "NONE":
        return me._replace(assignment=body.assignment)
    return me


# ---------------------------------------------------------------- the coordinators' log


def append(world: World, driver: Driver, effect: Append, record: RecordId) -> None:
    """Append records to the partition's log unless a later leader has taken over, and queue the completion event."""
    tp, error, base = effect.partition, "NONE", -1
    held = driver.broker.hosted.get(tp)
    if held is None or not driver.broker.is_leader(tp) or held.leadership.leader_epoch < world.offsets_epochs.get(tp, -1):
        error = "NOT_LEADER_OR_FOLLOWER"
    else:
        log = world.offsets_logs.get(tp, ())
        base = log[-1].base_offset + len(log[-1].records) if log else 0
        batch = LogBatch(base, effect.records, effect.producer_id)
        world.offsets_logs = {**world.offsets_logs, tp: (*log, batch)}
        record = driver.log("offsets_append", record, partition=tp, batch=batch)
    if effect.completion_event is not None:
        driver.enqueue(replace(effect.completion_event, error=error, base_offset=base), record)


def read_log(world: World, driver: Driver, tp: TopicPartition, offset: int) -> tuple[LogBatch, ...] | None:
    """Return the batches of a partition from an offset on, None if this broker has no replica of the partition."""
    if tp not in driver.broker.hosted:
        return None
    return tuple(batch for batch in world.offsets_logs.get(tp, ()) if batch.base_offset >= offset)


def update_coordinators(world: World) -> None:
    """Queue events for partitions of the offsets topic that changed their leader in this step, and disconnect consumers.

    A consumer is disconnected if the process of its coordinator has ended before the response.
    """
    for n, p in sorted(world.processes.items()):
        if p.driver.group is None:
            continue
        leads = {
            tp: held for tp, held in p.driver.broker.hosted.items() if tp.topic == OFFSETS_TOPIC and held.leadership.leader == n
        }
        cause = p.driver.journal.since(len(p.driver.journal) - 1)[0].id
        for tp in sorted(leads.keys() - p.coordinated_partitions):
            epoch = leads[tp].leadership.leader_epoch
            world.offsets_epochs = {**world.offsets_epochs, tp: max(epoch, world.offsets_epochs.get(tp, -1))}
            p.driver.enqueue(e.PartitionElected(tp.partition, epoch), cause)
        for tp in sorted(p.coordinated_partitions - leads.keys()):
            held = p.driver.broker.hosted.get(tp)
            p.driver.enqueue(e.PartitionResigned(tp.partition, held.leadership.leader_epoch if held else None), cause)
        p.coordinated_partitions = frozenset(leads)
    for name, me in world.consumers.items():
        if me.asked and (me.asked[0] not in world.processes or world.processes[me.asked[0]].driver.incarnation != me.asked[1]):
            _note(world, name, me._replace(asked=None, error="disconnected"), None)


def snapshot(world: World) -> dict[str, Any]:
    """Return the consumers and the coordinators' logs in plain values; nothing in a world without consumers."""
    if not world.settings.consumers:
        return {}
    logs = {str(tp): [to_json(batch) for batch in log] for tp, log in world.offsets_logs.items()}
    return {"consumers": {name: to_json(me) for name, me in world.consumers.items()}, "offsets_logs": logs}
