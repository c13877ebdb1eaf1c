"""What another coordinator may have written to a partition while this broker did not own it."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from kcontrol.group.coordinator_partition import partition_for
from tests.group.differential.bytes_of import group_record, offset_record, subscription
from tests.group.differential.clients import Client

if TYPE_CHECKING:
    from tests.group.differential.generate import Generator

Json = dict[str, Any]
ASSIGNMENT = b"\x01\x02"
STATIC_VERSION = 3  # the first version of a group's record that holds instance ids


def batches(generator: Generator, partition: int) -> list[Json]:
    """Return a few batches about the groups of a partition; none where no group lies there."""
    groups = [name for name in generator.groups if partition_for(name, generator.partitions) == partition]
    found: list[Json] = []
    for _ in range(generator.random.choice([1, 1, 2, 3]) if groups else 0):
        group = generator.random.choice(groups)
        found += _offsets(generator, group) if generator.random.random() < 0.4 else _group(generator, group)
    return found


def _offsets(generator: Generator, group: str) -> list[Json]:
    """Return a batch with one offset, maybe of a transaction and then maybe with its marker."""
    random = generator.random
    partition = random.choice(["t-0", "t-1", "u-0", "v-0"])
    version, fields = _offset_value(random, generator.count, generator.now, is_new=generator.is_new)
    record = offset_record(group, partition, version, None if random.random() < 0.2 else fields)
    if not (generator.has_transactions and random.random() < 0.5):
        return [{"records": [record]}]
    producer = random.choice([7, 8])
    marker = [{"producer": producer, "marker": random.random() < 0.6}] if random.random() < 0.5 else []
    return [{"records": [record], "producer": producer}, *marker]


def _offset_value(random: Random, offset: int, now: int, *, is_new: bool) -> tuple[int, Json]:
    """Return a version that the release can read, and the fields of a value."""
    version = random.choice([0, 1, 2, 3, 3, 3]) if is_new else 1
    metadata = random.choice(["", "m1", "m2"])
    fields = {"offset": offset, "metadata": metadata, "commit_timestamp": now, "leader_epoch": random.choice([-1, 2])}
    return version, fields | {"expire_timestamp": random.choice([-1, now + 300])}


def _group(generator: Generator, name: str) -> list[Json]:
    """Return a batch with a group's record or its tombstone; 0.9 writes no group without members."""
    random = generator.random
    if random.random() < 0.15:
        return [{"records": [group_record(name, 0, None)]}]
    clients = [client for client in generator.clients if client.group == name]
    members = _members(generator, random.sample(clients, random.randint(0, len(clients))))
    if not generator.is_new and not members:
        return []
    generation = max([client.generation for client in clients] + [0]) + random.choice([0, 1, 1, 3])
    version = random.choice([3, 3, 3, 2, 1, 0]) if generator.is_new else 0
    for client in members.values():
        client.generation = generation
    if any(client.instance for client in members.values()):
        version = STATIC_VERSION
    leader = next(iter(members), None)
    fields = {
        "protocol_type": "consumer", "generation": generation, "protocol": "range" if members else None, "leader": leader,
        "current_state_timestamp": random.choice([generator.now, -1, max(0, generator.now - 300)]),
        "members": [_member(member, client) for member, client in members.items()],
    }  # fmt: skip
    return [{"records": [group_record(name, version, fields)]}]


def _members(generator: Generator, clients: list[Client]) -> dict[str, Client]:
    """Return clients by member id, with a new id where one has none; no two of them share an id or an instance."""
    found: dict[str, Client] = {}
    for client in clients:
        if not client.member:
            if not generator.is_new and generator.ids >= MOST_IDS:
                continue
            prefix = client.instance or client.name
            client.member = f"{prefix}-{generator.new_id(prefix)}"
        instances = [other.instance for other in found.values()]
        if client.member not in found and not (client.instance and client.instance in instances):
            found[client.member] = client
    return found


MOST_IDS = 15


def _member(member: str, client: Client) -> Json:
    return {
        "member_id": member, "group_instance_id": client.instance, "client_id": client.name, "client_host": f"/{client.name}",
        "rebalance_timeout": client.rebalance_ms, "session_timeout": client.session_ms,
        "subscription": bytes.fromhex(subscription(["t"])), "assignment": ASSIGNMENT,
    }  # fmt: skip
