"""The actions that send a request to a group coordinator, and the conversion of a request into the coordinator's event.

REQUESTS has a row for each API with the fields of its request; a recording of a consumer group has requests with these fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kcontrol.cluster import consumer_clients, group_admin
from kcontrol.cluster.delivery import begin_if_idle, is_reachable
from kcontrol.core.model import TopicPartition
from kcontrol.group import events as e
from kcontrol.group.handlers import REQUESTS as THREAD
from kcontrol.group.model import GroupProtocol
from kcontrol.journal.record_fields import Hex, Int32, Int64, Partition

if TYPE_CHECKING:
    from kcontrol.cluster.world import World

HOST = "/127.0.0.1"
"""The host of all clients."""

KNOWN_ID_SINCE = 4
"""The first version of JoinGroup whose clients understand MEMBER_ID_REQUIRED. Source: KIP-394."""


class Sender(NamedTuple):
    """The sender of a request: its client id and host, and the version of the request.

    `uuid` is the text that the coordinator appends to a new member id.
    """

    client_id: str
    host: str
    version: int
    uuid: str = ""


class _OfGroup(msgspec.Struct, forbid_unknown_fields=True):
    group: str


class _Join(_OfGroup):
    # The member id, "" for a new member.
    member: str
    # The session timeout in ms.
    session: Int32
    # The protocol type, such as "consumer".
    type: str
    # (name, metadata in hexadecimal), in the order of preference.
    protocols: list[tuple[str, Hex]]
    # The rebalance timeout in ms; None, as before 0.10.1, stands for the session timeout.
    rebalance: Int32 | None = None
    # The group.instance.id.
    instance: str | None = None

    def event(self, id: str, sender: Sender) -> e.JoinGroup:
        timeouts = self.session, self.session if self.rebalance is None else self.rebalance
        offered = tuple(GroupProtocol(name, bytes.fromhex(metadata)) for name, metadata in self.protocols)
        known, client = sender.version >= KNOWN_ID_SINCE, (sender.client_id, sender.host, sender.uuid)
        return e.JoinGroup(id, self.group, self.member, *timeouts, self.type, offered, self.instance, *client, known)


class _Sync(_OfGroup):
    member: str
    # The generation.
    gen: Int32
    # Member id to assignment in hexadecimal; {} in the request of a follower.
    assignment: dict[str, Hex] = {}
    # The group.instance.id.
    instance: str | None = None
    # The protocol type and the protocol that the member expects, None before version 5 (KIP-559).
    type: str | None = None
    protocol: str | None = None

    def event(self, id: str, sender: Sender) -> e.SyncGroup:
        assigned = {member: bytes.fromhex(text) for member, text in self.assignment.items()}
        return e.SyncGroup(id, self.group, self.member, self.gen, assigned, self.instance, self.type, self.protocol)


class _Heartbeat(_OfGroup):
    member: str
    # The generation; `instance` is the group.instance.id.
    gen: Int32
    instance: str | None = None

    def event(self, id: str, sender: Sender) -> e.Heartbeat:
        return e.Heartbeat(id, self.group, self.member, self.gen, self.instance)


class _Leaving(msgspec.Struct, forbid_unknown_fields=True):
    # The member id, "" if absent; `instance` is the group.instance.id, None if absent.
    member: str = ""
    instance: str | None = None


class _Leave(_OfGroup):
    members: list[_Leaving]

    def event(self, id: str, sender: Sender) -> e.LeaveGroup:
        return e.LeaveGroup(id, self.group, tuple(e.MemberIdentity(each.member, each.instance) for each in self.members))


class _Commit(_OfGroup):
    # The generation; -1, with the member id "", for a client that is no member.
    gen: Int32
    # Partition to offset; `metadata` has the texts that are not "".
    offsets: dict[Partition, Int64]
    member: str = ""
    metadata: dict[Partition, str] = {}
    # The group.instance.id.
    instance: str | None = None
    # None from version 5 on.
    retention_ms: Int64 | None = None
    # In ms; None except in version 1.
    commit_timestamp: Int64 | None = None
    # The producer id of a TxnOffsetCommit; None for an OffsetCommit.
    producer: Int64 | None = None

    def event(self, id: str, sender: Sender) -> e.OffsetCommit:
        offsets = {
            TopicPartition.parse(tp): e.CommittedOffset(offset, self.metadata.get(tp, ""), self.commit_timestamp)
            for tp, offset in self.offsets.items()
        }
        more = self.instance, self.retention_ms, self.producer
        return e.OffsetCommit(id, self.group, self.member, self.gen, offsets, *more)


class _Fetch(_OfGroup):
    # None means all partitions.
    partitions: list[Partition] | None = None
    # Refuse the offset of a partition with a pending write (KIP-447).
    require_stable: bool = False

    def event(self, id: str, sender: Sender) -> e.OffsetFetch:
        named = None if self.partitions is None else tuple(map(TopicPartition.parse, self.partitions))
        return e.OffsetFetch(id, self.group, named, self.require_stable)


class _Describe(_OfGroup):
    def event(self, id: str, sender: Sender) -> e.DescribeGroup:
        return e.DescribeGroup(id, self.group)


class _OffsetDelete(_OfGroup):
    partitions: list[Partition]

    def event(self, id: str, sender: Sender) -> e.OffsetDelete:
        return e.OffsetDelete(id, self.group, tuple(map(TopicPartition.parse, self.partitions)))


class _Delete(msgspec.Struct, forbid_unknown_fields=True):
    groups: list[str]

    def event(self, id: str, sender: Sender) -> e.DeleteGroups:
        return e.DeleteGroups(id, tuple(self.groups))


class _List(msgspec.Struct, forbid_unknown_fields=True):
    # Only groups in these states, such as "Stable"; [] means all states.
    states: list[str] = []

    def event(self, id: str, sender: Sender) -> e.ListGroups:
        return e.ListGroups(id, tuple(self.states))


REQUESTS: dict[str, type[Any]] = {
    "JoinGroup": _Join, "SyncGroup": _Sync, "Heartbeat": _Heartbeat, "LeaveGroup": _Leave, "OffsetCommit": _Commit,
    "OffsetFetch": _Fetch, "DescribeGroups": _Describe, "OffsetDelete": _OffsetDelete, "DeleteGroups": _Delete,
    "ListGroups": _List,
}  # fmt: skip


def event_of(api: str, request: Mapping[str, Any], correlation_id: str, sender: Sender) -> Any:
    """Raises KeyError for an unknown API, ValueError for a wrong field of `request`."""
    build: Callable[[str, Sender], Any] = msgspec.convert(request, REQUESTS[api]).event
    return build(correlation_id, sender)


# ---------------------------------------------------------------- actions


def can_ask(world: World, client: str, api: str, version: int, request: Mapping[str, Any]) -> bool:
    """Raises ValueError for an unknown API or client, a wrong version or field."""
    if api not in REQUESTS or type(version) is not int or not isinstance(client, str):
        raise ValueError
    if not is_admin(api) and client not in world.consumers:
        raise ValueError
    msgspec.convert(dict(request), REQUESTS[api])
    return consumer_clients.coordinator(world, _group(request)) is not None


def ask(world: World, client: str, api: str, version: int, request: Mapping[str, Any]) -> None:
    """Send the request `api`, such as "JoinGroup", in this version and with the fields `request` to the group's coordinator.

    `client` is the name of a consumer or, if `is_admin(api)` is true, of an administrator.
    """
    broker = consumer_clients.coordinator(world, _group(request))
    assert broker is not None
    driver = world.processes[broker].driver
    cause = world.log("act", None, action=["coordinator_request", client, api, version, request])
    if is_admin(api):
        id = f"{group_admin.PREFIX}{api} {cause.seq} {_group(request)}".strip()
    else:
        consumer, process = world.consumers[client], (broker, driver.incarnation)
        consumer = consumer._replace(
            requests=consumer.requests + 1, asked=process, coordinator=process, active_at_ms=world.clock()
        )
        consumer_clients.note(world, client, consumer, cause)
        id = f"consumer {client} {consumer.requests}"
    driver.enqueue(event_of(api, request, id, Sender(client.lower(), HOST, version, f"{cause.seq:032x}")), cause)
    begin_if_idle(world, broker, THREAD)


def is_admin(api: str) -> bool:
    """Return whether `api` is a request of administrators, such as "DescribeGroups", which changes no consumer."""
    return api in group_admin.SINCE


def _group(request: Mapping[str, Any]) -> str:
    return str(request.get("group") or next(iter(request.get("groups", ())), ""))


def can_expire(world: World, broker: int) -> bool:
    """Return whether a broker can look for expired offsets: it runs, and the world has consumers."""
    return bool(world.settings.consumers) and is_reachable(world, broker)


def expire_offsets(world: World, broker: int) -> None:
    """Queue the event ExpireOffsets at a broker, whose coordinator then removes expired offsets.

    Source: offsets.retention.check.interval.ms, GroupMetadataManager.scala (0.9, 2.8).
    """
    cause = world.log("act", None, action=["expire_offsets", broker])
    world.processes[broker].driver.enqueue(e.ExpireOffsets(), cause)
