"""The order of Java's hash maps, and what it decides among the sticky assignors."""

from __future__ import annotations

import pytest

from kcontrol.core.model import TopicPartition
from kcontrol.group.assignors import Subscription
from kcontrol.group.java_hash_order import in_java_hash_map_order
from kcontrol.group.offsets_topic_records import decode, encode, sorted_subscription
from kcontrol.group.sticky import ASSIGNORS


def parsed(*names: str) -> tuple[TopicPartition, ...]:
    return tuple(map(TopicPartition.parse, names))


# Both as StickyAssignor and CooperativeStickyAssignor of kafka-clients 2.8.2 assign them.
OWNED = {"x-8": Subscription(("t0", "t1")), "consumer8": Subscription(("t2", "t0", "t1"), parsed("t0-1", "t1-3"))}
WITHHELD = {
    "x-7": Subscription(("t1", "t0")),
    "Zed8": Subscription(("t1", "t0", "t3", "t2"), parsed("t0-4", "t0-3", "t3-3", "t3-2", "t3-1")),
    "x-4": Subscription(("t3",)),
}


@pytest.mark.parametrize(("assignor", "partitions", "members", "expected"), [
    ("sticky", {"t0": 2, "t1": 4, "t2": 1}, OWNED, {"x-8": "t0-0 t1-0 t1-1", "consumer8": "t1-3 t0-1 t2-0 t1-2"}),
    (
        "cooperative-sticky",
        {"t0": 5, "t1": 1, "t2": 3, "t3": 4},
        WITHHELD,
        {"x-7": "t0-0 t0-1 t0-2 t1-0", "Zed8": "t2-0 t2-1 t2-2 t0-4", "x-4": "t3-0"},
    ),
])  # fmt: skip
def test_the_order_of_a_hash_map_decides_as_in_java(
    assignor: str, partitions: dict[str, int], members: dict[str, Subscription], expected: dict[str, str]
) -> None:
    """Where members subscribe to different topics, what they owned is walked by `hashCode`, as the released assignors do."""
    found = ASSIGNORS[assignor](partitions, members)
    assert {name: " ".join(map(str, held)) for name, held in found.items()} == expected


def test_a_table_grows_and_never_shrinks() -> None:
    """A java.util.HashSet (Java 17) of TopicPartitions that has held fifteen walks three of them otherwise than one of three."""
    left = parsed("orders-0", "orders-3", "a-23")
    assert list(map(str, in_java_hash_map_order(left, largest_size=15))) == ["a-23", "orders-0", "orders-3"]
    assert list(map(str, in_java_hash_map_order(left))) == ["orders-0", "a-23", "orders-3"]


def test_a_subscription_is_written_in_order() -> None:
    """Version 1 has topics and owned partitions in order, as serializeSubscription of kafka-clients 2.8.2 writes them."""
    owned = [{"topic": "t1", "partitions": [8, 7]}, {"topic": "t0", "partitions": [97, 64]}]
    data = encode("subscription", 1, sorted_subscription(1, {"topics": ["b", "a"], "user_data": None, "owned": owned}))
    assert data.hex() == (
        "000100000002000161000162ffffffff000000020002743000000002000000400000006100027431000000020000000700000008"
    )
    assert decode("subscription", data)[1]["topics"] == ["a", "b"]
