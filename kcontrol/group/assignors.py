"""The assignors range and round robin: which member consumes which partition.

The leader of a group runs an assignor between JoinGroup and SyncGroup. `sticky.py` has the
assignors that keep owned partitions, and ASSIGNORS with all four.

Source: RangeAssignor.java, RoundRobinAssignor.java (0.9, 2.8).
"""

# An assignor takes `{topic: number of partitions}` and `{member id: subscription}`, in the order in
# which Kafka iterates over the members, and gives every member a list, which may be empty.
from collections.abc import Callable, Mapping
from itertools import cycle
from typing import NamedTuple

from kcontrol.core.model import TopicPartition
from kcontrol.group.offsets_topic_records import STICKY_USER_DATA, read, write


class Subscription(NamedTuple):
    """The topics to which a member subscribes, and the partitions that it owns."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    # The generation in which the member got `owned`; None if the subscription has no generation, -1
    # if the user data of the subscription cannot be read.
    generation: int | None = None
    # The group.instance.id of a static member.
    instance_id: str | None = None


Partitions = Mapping[str, int]
Members = Mapping[str, Subscription]
Assignment = dict[str, list[TopicPartition]]


def partitions_of(partitions: Partitions, topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(partitions.get(topic, 0))]


def in_order(members: Members) -> list[str]:
    """Return the member ids in the order in which range and round robin visit the members.

    Static members come first, by instance id, then dynamic members by member id. Source:
    MemberInfo.compareTo (2.8).
    """
    names = {id: member.instance_id for id, member in members.items()}
    keys = {id: (name is None, code_units(name), code_units(id)) for id, name in names.items()}
    return sorted(keys, key=lambda name: keys[name])


def code_units(name: str | None) -> bytes:
    """Return a sort key that orders names as Java does, by UTF-16 code units; b"" for None."""
    return (name or "").encode("utf-16-be", "surrogatepass")


def assign_range(partitions: Partitions, members: Members) -> Assignment:
    """Return the assignment that divides each topic's partitions into ranges, one per subscriber.

    `partitions` is, for example, `{"t": 3}`, `members` maps member ids to subscriptions, and the
    result is `{"a": [t-0, t-1], "b": [t-2]}`.

    Source: RangeAssignor.assign (0.9, 2.8).
    """
    assigned: Assignment = {id: [] for id in members}
    for topic in sorted({topic for member in members.values() for topic in member.topics}):
        takers = [id for id in in_order(members) if topic in members[id].topics]
        # The first subscribers, in the order of `in_order`, get one partition more if the division
        # leaves a rest.
        each, more = divmod(partitions.get(topic, 0), len(takers))
        for index, id in enumerate(takers):
            start = each * index + min(index, more)
            assigned[id] += partitions_of(partitions, topic)[start : start + each + (index < more)]
    return assigned


def assign_round_robin(partitions: Partitions, members: Members) -> Assignment:
    """Return the assignment that gives each partition to the next member in a circle.

    `partitions` is, for example, `{"t": 3}`, `members` maps member ids to subscriptions, and the
    result is `{"a": [t-0, t-2], "b": [t-1]}`.

    Source: RoundRobinAssignor.assign (0.9, 2.8).
    """
    assigned: Assignment = {id: [] for id in members}
    ring = cycle(in_order(members))
    # Topics are in order of their names, static members by instance id before dynamic members by
    # member id.
    for topic in sorted({topic for member in members.values() for topic in member.topics}):
        for tp in partitions_of(partitions, topic):
            # Members that do not subscribe to the partition's topic are passed over.
            assigned[next(id for id in ring if topic in members[id].topics)].append(tp)
    return assigned


def sticky_user_data(previous_assignment: list[dict[str, object]], generation: int | None) -> bytes:
    """Return the user data of a sticky member: its last assignment and its generation.

    `previous_assignment` has {"topic": name, "partitions": [numbers]} for each topic. Without a
    generation the data have version 0, else version 1.

    Source: StickyAssignor.serializeTopicPartitionAssignment (2.8).
    """
    fields = {"previous_assignment": previous_assignment, "generation": generation}
    return write(STICKY_USER_DATA[int(generation is not None)], fields)


def read_sticky_user_data(data: bytes) -> dict[str, object]:
    """Return the fields of a sticky member's user data.

    Version 0 has `previous_assignment`, version 1 also `generation`. Raises ValueError if the data
    have neither form.
    """
    try:
        return read(STICKY_USER_DATA[1], data)[0]
    except ValueError:
        return read(STICKY_USER_DATA[0], data)[0]


Assignor = Callable[[Partitions, Members], Assignment]
