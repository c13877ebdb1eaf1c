"""The topics that the members of a group subscribe to, as the expiry of offsets uses them.

Source: GroupMetadata.computeSubscribedTopics (2.8), GroupMetadata.removeExpiredOffsets (2.4.1, 2.8.1, 2.8.2).
"""

from __future__ import annotations

import pytest

from kcontrol.core.model import TopicPartition
from kcontrol.group import model
from kcontrol.group.context import GroupConfig, GroupContext
from kcontrol.group.group_machine import subscribed_topics
from kcontrol.group.group_rules import group_rules
from kcontrol.group.offset_expiration import expired_partitions
from kcontrol.group.offsets_topic_records import encode

METADATA = encode("subscription", 0, {"topics": ["t", "u"], "user_data": b""})


def group(protocol_type: str, protocol: str | None, *members: bytes) -> model.Group:
    """Return a group with one member for each metadata, all with the protocol "range"."""
    found = model.Members(
        model.Member(f"m{n}", "c", "/127.0.0.1", 10_000, 60_000, (model.GroupProtocol("range", metadata),))
        for n, metadata in enumerate(members)
    )
    return model.Group("g", model.GroupState.STABLE, 0, protocol_type).with_changes(protocol=protocol, members=found)


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
def test_only_a_consumer_group_with_a_protocol_has_subscribed_topics(asked: model.Group, topics: set[str] | None) -> None:
    """The topics are known for consumers under a chosen protocol, are none without members, and unknown otherwise."""
    assert subscribed_topics(asked) == topics


@pytest.mark.parametrize("state", [model.GroupState.PREPARING, model.GroupState.COMPLETING, model.GroupState.STABLE])
@pytest.mark.parametrize(("release", "keeps"), [("2.4", False), ("2.8.1", False), ("2.8.2", True), ("2.8", True), ("3.9", True)])
def test_a_rebalance_keeps_offsets_of_other_topics_since_2_8_2(release: str, keeps: bool, state: model.GroupState) -> None:
    """An offset of a topic without subscriber expires in a Stable group; up to 2.8.1 also during a rebalance (KAFKA-13636)."""
    members = group("consumer", "range", METADATA)
    stored = model.CommitRecordMetadataAndOffset(model.OffsetAndMetadata(5, "", 0, None, -1))
    offsets = model.Offsets({TopicPartition("t", 0): stored, TopicPartition("v", 0): stored})
    groups = {"g": members.with_changes(state=state, subscribed_topics=subscribed_topics(members))}
    config = GroupConfig.of(release, retention_ms=1_000)
    ctx = GroupContext(group_rules(release), config, groups=groups, offsets={"g": offsets})
    kept = keeps and state is not model.GroupState.STABLE
    assert expired_partitions(ctx, "g", 5_000) == (() if kept else (TopicPartition("v", 0),))
