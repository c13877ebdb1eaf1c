"""Who consumes which partition: what the leader of a consumer group computes between JoinGroup and SyncGroup.

An assignor takes topic -> number of partitions and member -> subscription, in the order in which the members are walked, and
gives every member a list. Source: RangeAssignor.java, RoundRobinAssignor.java (0.9, 2.8); `sticky.py` has the other two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kcontrol.group.records import STICKY_USER_DATA, read, write
from kcontrol.model import TopicPartition


class Subscription(NamedTuple):
    """What a member wants, and what it has: `generation` None is no generation at all, -1 one that is unknown."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int | None = None
    instance_id: str | None = None


Partitions = Mapping[str, int]
Members = Mapping[str, Subscription]
Assignment = dict[str, list[TopicPartition]]


def partitions_of(partitions: Partitions, topic: str) -> list[TopicPartition]:
    """Those of a topic; a topic that nobody knows has none."""
    return [TopicPartition(topic, number) for number in range(partitions.get(topic, 0))]


def in_order(members: Members) -> list[str]:
    """Static members by instance id, then the others by member id; in 0.9 there are only others."""
    return sorted(members, key=lambda name: (members[name].instance_id is None, members[name].instance_id or "", name))


def assign_range(partitions: Partitions, members: Members) -> Assignment:
    """Of each topic a stretch for each, the first members one more each where it does not come out even."""
    assigned: Assignment = {id: [] for id in members}
    for topic in sorted({topic for member in members.values() for topic in member.topics}):
        takers = [id for id in in_order(members) if topic in members[id].topics]
        each, more = divmod(partitions.get(topic, 0), len(takers))
        for index, id in enumerate(takers):
            start = each * index + min(index, more)
            assigned[id] += partitions_of(partitions, topic)[start : start + each + (index < more)]
    return assigned


def assign_round_robin(partitions: Partitions, members: Members) -> Assignment:
    """All partitions in turn, each to the next member that subscribes to its topic."""
    assigned: Assignment = {id: [] for id in members}
    ring, position = in_order(members), 0
    for topic in sorted({topic for member in members.values() for topic in member.topics}):
        for tp in partitions_of(partitions, topic):
            while topic not in members[ring[position % len(ring)]].topics:
                position += 1
            assigned[ring[position % len(ring)]].append(tp)
            position += 1
    return assigned


def sticky_user_data(previous: list[dict[str, object]], generation: int | None) -> bytes:
    """What a sticky member says of what it had; version 0 without a generation."""
    return write(STICKY_USER_DATA[int(generation is not None)], {"previous_assignment": previous, "generation": generation})


def read_sticky_user_data(data: bytes) -> dict[str, object]:
    """The fields of version 1, or else of version 0. Raises ValueError where it is neither."""
    try:
        return read(STICKY_USER_DATA[1], data)[0]
    except ValueError:
        return read(STICKY_USER_DATA[0], data)[0]


Assignor = Callable[[Partitions, Members], Assignment]
