"""A coordinator ignores an election or a resignation of an older epoch since 2.8."""

from __future__ import annotations

import pytest

from kcontrol.core.events import Event
from kcontrol.group import events as e
from kcontrol.group.context import GroupConfig
from tests.conformance.group.stage import Stage


def owned_after(release: str, *events: Event) -> bool:
    """Whether the coordinator answers for partition 7 after these events."""
    stage = Stage(release, GroupConfig.of(release), ())
    for event in events:
        stage.handle(event)
    assert not stage.context.loading
    return 7 in stage.context.owned


@pytest.mark.parametrize(("release", "is_ignored"), [("0.9", False), ("2.4", False), ("2.8", True), ("3.9", True)])
def test_an_older_resignation_is_ignored_since_2_8(release: str, is_ignored: bool) -> None:
    """A coordinator of epoch 5 goes on after a resignation of epoch 3, and stops after a resignation of epoch 6."""
    # Source: GroupMetadataManager.removeGroupsForPartition and maybeUpdateCoordinatorEpoch (2.8), KAFKA-12460.
    elected = e.PartitionElected(7, 5)
    assert owned_after(release, elected, e.PartitionResigned(7, 3)) is is_ignored
    assert not owned_after(release, elected, e.PartitionResigned(7, 6))


@pytest.mark.parametrize(("release", "is_ignored"), [("0.9", False), ("2.4", False), ("2.8", True), ("3.9", True)])
def test_an_older_election_is_ignored_since_2_8(release: str, is_ignored: bool) -> None:
    """A coordinator that resigned under epoch 6 does not load the partition for epoch 5, and does for epochs 6 and 7."""
    # Source: GroupMetadataManager.doLoadGroupsAndOffsets and maybeUpdateCoordinatorEpoch (2.8), KAFKA-12460.
    before = (e.PartitionElected(7, 4), e.PartitionResigned(7, 6))
    assert owned_after(release, *before, e.PartitionElected(7, 5)) is not is_ignored
    assert owned_after(release, *before, e.PartitionElected(7, 6)) and owned_after(release, *before, e.PartitionElected(7, 7))
