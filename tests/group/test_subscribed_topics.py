"""The topics that the members of a group subscribe to, as the expiry of offsets uses them.

Source: GroupMetadata.computeSubscribedTopics (2.8).
"""

from __future__ import annotations

import pytest

from kcontrol.group.group_machine import subscribed_topics
from kcontrol.group.model import Group, GroupProtocol, GroupState, Member
from kcontrol.group.offsets_topic_records import encode

METADATA = encode("subscription", 0, {"topics": ["t", "u"], "user_data": b""})


def group(protocol_type: str, protocol: str | None, *members: bytes) -> Group:
    """Return a group with one member for each metadata, all with the protocol "range"."""
    found = {
        f"m{n}": Member(f"m{n}", "c", "/127.0.0.1", 10_000, 60_000, (GroupProtocol("range", metadata),))
        for n, metadata in enumerate(members)
    }
    return Group("g", GroupState.STABLE, 0, protocol_type).with_changes(protocol=protocol, members=found)


@pytest.mark.parametrize(
    ("asked", "topics"),
    [
        (group("consumer", "range", METADATA), {"t", "u"}),
        (group("consumer", None), set()),
        (group("consumer", None, METADATA), None),
        (group("consumer", "range", METADATA, b"\\x00"), None),
        (group("connect", "range", METADATA), None),
        (group("connect", None), None),
    ],
    ids=[
        "a chosen protocol",
        "no members",
        "no protocol yet",
        "metadata that cannot be read",
        "another type",
        "empty, another type",
    ],
)
def test_only_a_consumer_group_with_a_protocol_has_subscribed_topics(asked: Group, topics: set[str] | None) -> None:
    """The topics are known for consumers under a chosen protocol, are none without members, and unknown otherwise."""
    assert subscribed_topics(asked) == topics
