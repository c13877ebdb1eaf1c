"""The consumer protocol as clients use it: the subscription in JoinGroup, and the assignment that a group's leader makes.

A subscription names topics, the partitions that the member owns (COOPERATIVE alone), and user data of the assignor. The sticky
assignor writes the member's last assignment and its generation into the user data, the cooperative one the generation alone. The
leader reads the subscriptions of all members, runs the assignor that the coordinator's vote has chosen, and sends the result in
SyncGroup. The coordinator reads none of these bytes before 2.4, and later the topics alone.

Source: ConsumerProtocol.java (0.9, 2.4, 2.8), ConsumerCoordinator.java: metadata, performAssignment, StickyAssignor.java and
CooperativeStickyAssignor.java: subscriptionUserData (2.8.2).
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kcontrol.cluster.consumer_configs import ASSIGNMENT, METADATA, STRATEGY, TOPICS, USER_DATA, ConsumerConfig
from kcontrol.cluster.consumer_state import Consumer
from kcontrol.core.java_hash import java_hash
from kcontrol.core.model import TopicPartition
from kcontrol.core.releases import is_since
from kcontrol.group.assignors import Subscription, read_sticky_user_data, sticky_user_data
from kcontrol.group.model import GroupProtocol
from kcontrol.group.offsets_topic_records import decode, encode, sorted_subscription
from kcontrol.group.sticky import ASSIGNORS, UNKNOWN

BUCKETS, LOAD = 16, 0.75
OWN_ASSIGNOR = "assignor"
"""The name of a learner's assignor in the strategies of a run (the class `Changes`)."""


def protocols(consumer: Consumer, config: ConsumerConfig, topics: Iterable[str]) -> tuple[GroupProtocol, ...]:
    """In the order of preference. A consumer without the setting `topics` subscribes to all."""
    wanted = sorted(topics) if config[TOPICS] is None else list(config[TOPICS])
    given = config[METADATA]
    return tuple(
        GroupProtocol(name, _subscription(consumer, config, name, wanted) if given is None else given)
        for name in config[STRATEGY]
    )


def _subscription(consumer: Consumer, config: ConsumerConfig, strategy: str, topics: list[str]) -> bytes:
    version = int(is_since("2.4", config.release))
    owned = by_topic(partitions(consumer.assignment)) if version and config.is_cooperative else []
    data = config[USER_DATA]
    if strategy == "sticky" and consumer.last_assignment:
        generation = consumer.last_generation if is_since("2.3", config.release) else None
        data = sticky_user_data(by_topic(partitions(consumer.last_assignment)), generation)
    elif strategy == "cooperative-sticky" and is_since("2.8", config.release):
        data = struct.pack(">i", consumer.last_generation)
    return encode("subscription", version, sorted_subscription(version, {"topics": topics, "user_data": data, "owned": owned}))


def partitions(assignment: bytes) -> tuple[TopicPartition, ...]:
    """() for zero bytes. Raises ValueError for bytes that are no assignment."""
    entries = decode("assignment", assignment)[1]["partitions"] if assignment else []
    return tuple(TopicPartition(entry["topic"], number) for entry in entries for number in entry["partitions"])


def is_assignment(data: bytes) -> bool:
    """Return whether a client can read the assignment in these bytes; zero bytes are no assignment."""
    try:
        return bool(decode("assignment", data))
    except ValueError:
        return False


def by_topic(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    """The topics in the order of a Java hash map, their numbers in that of `partitions`."""
    topics: dict[str, list[int]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
    return [{"topic": topic, "partitions": topics[topic]} for topic in in_hash_order(topics)]


def in_hash_order(names: Iterable[str]) -> list[str]:
    """Return the different texts in `names`, in the order in which a Java hash map with these keys returns them.

    Source: java.util.HashMap.
    """
    found, buckets = list(dict.fromkeys(names)), BUCKETS
    while len(found) > LOAD * buckets:
        buckets *= 2
    return sorted(found, key=lambda name: _spread(java_hash(name) & 0xFFFF_FFFF) & (buckets - 1))


def _spread(value: int) -> int:
    return value ^ value >> 16


def read_subscription(data: bytes, strategy: str, instance_id: str | None = None) -> Subscription:
    """Return a member's subscription as the assignor `strategy` reads it; `instance_id` is its group.instance.id.

    Raises ValueError for bytes that are no subscription. Source: StickyAssignor.memberData,
    CooperativeStickyAssignor.memberData (2.8.2).
    """
    fields = decode("subscription", data)[1]
    topics, said = tuple(fields["topics"]), fields["user_data"]
    owned, generation = [], None
    try:
        if strategy == "sticky" and said:
            memory: Mapping[str, Any] = read_sticky_user_data(said)
            owned, generation = list(_listed(memory["previous_assignment"])), memory.get("generation", None)
        elif strategy == "cooperative-sticky":
            owned = list(_listed(fields.get("owned", [])))
            generation = None if said is None else int(struct.unpack(">i", said[:4])[0])
    # User data that cannot be read count as no owned partitions.
    except (ValueError, struct.error):
        owned, generation = [], UNKNOWN
    return Subscription(topics, tuple(owned), generation, instance_id)


def _listed(entries: Iterable[Mapping[str, Any]]) -> Iterable[TopicPartition]:
    return (TopicPartition(entry["topic"], number) for entry in entries for number in entry["partitions"])


def assign(
    consumer: Consumer,
    config: ConsumerConfig,
    topics: Mapping[str, int],
    instances: Mapping[str, str | None],
    own: Callable[..., Any] | None = None,
) -> dict[str, bytes]:
    """Return {member id: encoded assignment} for the group whose leader is `consumer`.

    `topics` maps topics to numbers of partitions, `instances` member ids to group.instance.ids. A learner's assignor `own`
    replaces Kafka's assignor.
    """
    members = dict(consumer.members)
    # The assignor visits the members in the order of Java's hash map. A subscription that cannot be read raises ValueError.
    asked = {id: read_subscription(members[id], consumer.protocol, instances.get(id)) for id in in_hash_order(members)}
    subscribed = {topic for member in asked.values() for topic in member.topics}
    known = {t: number for t, number in topics.items() if t in subscribed}
    # `own(topics, {member id: Subscription}, is_cooperative)` returns {member id: partitions}; a cooperative assignor may
    # withhold partitions.
    given = () if own is None else (consumer.protocol == "cooperative-sticky",)
    found = (own or ASSIGNORS[consumer.protocol])(known, asked, *given) if asked else {}
    version = int(is_since("2.4", config.release))
    made = {id: encode("assignment", version, {"partitions": by_topic(tps), "user_data": None}) for id, tps in found.items()}
    # The setting `protocol.assignment` replaces the bytes of each assignment.
    return made if config[ASSIGNMENT] is None else dict.fromkeys(made, config[ASSIGNMENT])
