"""Consumers, and the coordinators that they ask, where the settings name consumers.

A group's coordinator is the broker that leads its partition of `__consumer_offsets`, a topic like any other. What coordinators
write is kept once for each partition, as if all its replicas had it at once; a broker that somebody with a later leader epoch has
succeeded cannot write any more. The acknowledgement is an event, so that others may come in between.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from kcontrol.effects import Append, LogBatch
from kcontrol.generations import group_rules
from kcontrol.group import events as e
from kcontrol.group.assignors import Subscription
from kcontrol.group.context import GroupConfig, GroupContext
from kcontrol.group.handlers import REQUESTS
from kcontrol.group.model import GroupProtocol
from kcontrol.group.placement import OFFSETS_TOPIC, partition_for
from kcontrol.group.records import encode, topics_of
from kcontrol.group.sticky import ASSIGNORS
from kcontrol.model import TopicPartition
from kcontrol.runtime.driver import Driver
from kcontrol.runtime.journal import RecordId, plain
from kcontrol.sim.exchange import begin_if_idle, hears
from kcontrol.sim.settings import Settings

if TYPE_CHECKING:
    from kcontrol.sim.world import World

SESSION_MS, REBALANCE_MS = 10_000, 60_000
PROTOCOLS = ("range", "roundrobin")
REQUESTED = ("join", "sync", "heartbeat", "leave")


class Consumer(NamedTuple):
    """What one consumer knows of its group. `asked` is the coordinator, with its incarnation, whose answer is still to come."""

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


def config(settings: Settings) -> GroupConfig:
    """The coordinators' settings; a small world has one partition of the offsets topic unless told otherwise."""
    return GroupConfig.of(settings.release, **({"partitions": 1} | dict(settings.group_config)))


def context(settings: Settings) -> GroupContext | None:
    """What a broker that has just started knows of groups: nothing; None in a world without consumers."""
    return GroupContext(group_rules(settings.release), config(settings)) if settings.consumers else None


def consumers(settings: Settings) -> dict[str, Consumer]:
    return {name: Consumer(group) for name, group in settings.consumers.items()}


# ---------------------------------------------------------------- what a consumer asks


def coordinator(world: World, group: str) -> int | None:
    """Who coordinates a group, as far as brokers that can be asked know: the leader of its partition, if it can be asked too."""
    tp = TopicPartition(OFFSETS_TOPIC, partition_for(group, config(world.settings).partitions))
    known = [p.driver.broker.metadata[tp].leader for _, p in sorted(world.processes.items()) if tp in p.driver.broker.metadata]
    return next((leader for leader in known if hears(world, leader)), None)


def can_ask(world: World, name: str, request: str) -> bool:
    """Whether a consumer waits for nothing and somebody coordinates its group. Raises ValueError for other words."""
    if request not in REQUESTED or not isinstance(name, str):
        raise ValueError
    return (
        name in world.consumers
        and world.consumers[name].asked is None
        and coordinator(world, world.consumers[name].group) is not None
    )


def can_commit(world: World, name: str, partition: str, offset: int) -> bool:
    """The same, after a look at the form. Raises ValueError if it has another."""
    TopicPartition.parse(partition)
    return can_ask(world, name, "join") and isinstance(offset, int)


def ask(world: World, name: str, request: str) -> None:
    """A consumer sends one of REQUESTED, as it takes things to be; a leader brings what it has assigned."""
    me = world.consumers[name]
    match request:
        case "join":
            known = group_rules(world.settings.release).known_member_ids
            topics = encode("subscription", 0, {"topics": sorted(_topics(world)), "user_data": None})
            offered = tuple(GroupProtocol(protocol, topics) for protocol in PROTOCOLS)
            drawn = random.Random(f"{world.settings.seed}/{name}/{me.requests}").getrandbits(128)
            ids = (None, name, "/127.0.0.1", f"{drawn:032x}", known)
            _send(
                world,
                name,
                e.JoinGroup(_next(name, me), me.group, me.member_id, SESSION_MS, REBALANCE_MS, "consumer", offered, *ids),
            )
        case "sync":
            assigned = _assign(world, me) if me.member_id == me.leader else {}
            _send(world, name, e.SyncGroup(_next(name, me), me.group, me.member_id, me.generation, assigned))
        case "heartbeat":
            _send(world, name, e.Heartbeat(_next(name, me), me.group, me.member_id, me.generation))
        case _:
            _send(world, name, e.LeaveGroup(_next(name, me), me.group, (e.MemberIdentity(me.member_id),)))


def commit(world: World, name: str, partition: str, offset: int) -> None:
    """A consumer commits one offset."""
    me = world.consumers[name]
    offsets = {TopicPartition.parse(partition): e.CommittedOffset(offset)}
    _send(world, name, e.OffsetCommit(_next(name, me), me.group, me.member_id, me.generation, offsets))


def _next(name: str, me: Consumer) -> str:
    return f"consumer {name} {me.requests + 1}"


def _assign(world: World, me: Consumer) -> dict[str, bytes]:
    """What a leader assigns: by the protocol that was chosen, the partitions of the topics that there are."""
    members = {id: Subscription(tuple(sorted(topics_of(metadata) or ()))) for id, metadata in me.members}
    given = ASSIGNORS[me.protocol](_topics(world), members) if me.members else {}
    return {
        id: encode(
            "assignment", 0, {"partitions": [{"topic": tp.topic, "partitions": [tp.partition]} for tp in tps], "user_data": None}
        )
        for id, tps in given.items()
    }


def _topics(world: World) -> dict[str, int]:
    """The topics that brokers know, with their partitions; the coordinators' own is none to consume."""
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


# ---------------------------------------------------------------- what it hears


def note_answer(world: World, correlation_id: str, body: Any, record: RecordId) -> bool:
    """An answer reaches its consumer; return False for the answers to others."""
    if not correlation_id.startswith("consumer "):
        return False
    name = correlation_id.split(" ")[1]
    _note(world, name, heard(world.consumers[name], body), record)
    return True


def heard(me: Consumer, body: Any) -> Consumer:
    """A consumer after an answer: an unknown one forgets its id, one of an old generation its generation."""
    error = body.error
    if isinstance(body, e.ErrorsResult):
        error = next(iter(body.errors.values()))
    if isinstance(body, e.LeaveResult) and body.members:
        error = body.members[0]
    me = me._replace(error=error, asked=None)
    if error in ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID") or (isinstance(body, e.LeaveResult) and error == "NONE"):
        return me._replace(member_id="", generation=-1, leader="", members=(), assignment=b"")
    if error == "ILLEGAL_GENERATION":
        return me._replace(generation=-1)
    if isinstance(body, e.JoinResult) and error in ("NONE", "MEMBER_ID_REQUIRED"):
        me = me._replace(member_id=body.member_id, generation=body.generation, leader=body.leader)
        return me._replace(protocol=body.protocol, members=body.members, assignment=b"")
    if isinstance(body, e.SyncResult) and error == "NONE":
        return me._replace(assignment=body.assignment)
    return me


# ---------------------------------------------------------------- what coordinators write and read


def append(world: World, driver: Driver, effect: Append, record: RecordId) -> None:
    """Put records into the partition's log, if nobody has succeeded this broker, and acknowledge them by an event."""
    tp, error, base = effect.partition, "NONE", -1
    held = driver.broker.hosted.get(tp)
    if held is None or not driver.broker.leads(tp) or held.value.leader_epoch < world.offsets_epochs.get(tp, -1):
        error = "NOT_LEADER_OR_FOLLOWER"
    else:
        log = world.offsets_logs.get(tp, ())
        base = log[-1].base_offset + len(log[-1].records) if log else 0
        batch = LogBatch(base, effect.records, effect.producer)
        world.offsets_logs = {**world.offsets_logs, tp: (*log, batch)}
        record = driver.log("offsets_append", record, partition=tp, batch=batch)
    if effect.then is not None:
        driver.enqueue(replace(effect.then, error=error, base_offset=base), record)


def read_log(world: World, driver: Driver, tp: TopicPartition, offset: int) -> tuple[LogBatch, ...] | None:
    """What a partition holds from an offset on, None where this broker has no replica of it."""
    if tp not in driver.broker.hosted:
        return None
    return tuple(batch for batch in world.offsets_logs.get(tp, ()) if batch.base_offset >= offset)


def keep_up(world: World) -> None:
    """Tell coordinators what they lead since this step, and consumers whose coordinator has died."""
    for n, p in sorted(world.processes.items()):
        if p.driver.group is None:
            continue
        leads = {tp: held for tp, held in p.driver.broker.hosted.items() if tp.topic == OFFSETS_TOPIC and held.value.leader == n}
        cause = p.driver.journal.since(len(p.driver.journal) - 1)[0].id
        for tp in sorted(leads.keys() - p.coordinates):
            epoch = leads[tp].value.leader_epoch
            world.offsets_epochs = {**world.offsets_epochs, tp: max(epoch, world.offsets_epochs.get(tp, -1))}
            p.driver.enqueue(e.PartitionElected(tp.partition, epoch), cause)
        for tp in sorted(p.coordinates - leads.keys()):
            told = p.driver.broker.hosted.get(tp)
            p.driver.enqueue(e.PartitionResigned(tp.partition, told.value.leader_epoch if told else None), cause)
        p.coordinates = frozenset(leads)
    for name, me in world.consumers.items():
        if me.asked and (me.asked[0] not in world.processes or world.processes[me.asked[0]].driver.incarnation != me.asked[1]):
            _note(world, name, me._replace(asked=None, error="disconnected"), None)


def snapshot(world: World) -> dict[str, Any]:
    """What a picture shows of all this; nothing in a world without consumers."""
    if not world.settings.consumers:
        return {}
    logs = {str(tp): [plain(batch) for batch in log] for tp, log in world.offsets_logs.items()}
    return {"consumers": {name: plain(me) for name, me in world.consumers.items()}, "offsets_logs": logs}
