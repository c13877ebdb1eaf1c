"""Requests that wait for other members or for the log, and the writes that end when their group is another or has gone."""

from __future__ import annotations

import pytest

from kcontrol.core.model import TopicPartition
from kcontrol.group import events as e
from kcontrol.group.context import GroupConfig
from kcontrol.group.group_machine import EMPTY
from kcontrol.group.model import GroupProtocol
from tests.conformance.group.stage import Stage
from tests.core.support import of_kind

RANGE = (GroupProtocol("range", b"r"),)
T0 = TopicPartition("t", 0)


def coordinator(release: str = "2.8.2") -> Stage:
    """Return the coordinator of all groups; their first rebalance waits for no further member."""
    stage = Stage(release, GroupConfig.of(release, partitions=1, min_session_timeout_ms=1, initial_delay_ms=0), [])
    stage.handle(e.PartitionElected(0, 1))
    return stage


def join(stage: Stage, label: str, group_id: str, member_id: str = "", instance_id: str | None = None) -> str:
    """Send a JoinGroup, and return the member id of its answer, "" while there is none."""
    stage.handle(
        e.JoinGroup(label, group_id, member_id, 9_000, 9_000, "consumer", RANGE, instance_id, "c", "/h", f"uuid-{label}", False)
    )
    stage.advance(stage.now)
    return str(stage.answers[label].body.member_id) if label in stage.answers else ""


def static_member_back(stage: Stage, group_id: str) -> str:
    """Let a static member form a Stable group and come back; return its new id, of which the record is not yet written."""
    first = join(stage, f"{group_id}1", group_id, instance_id="i")
    stage.handle(e.SyncGroup(f"{group_id}2", group_id, first, 1, {first: b"a"}, "i"))
    stage.mode = "hold"
    assert join(stage, f"{group_id}3", group_id, instance_id="i") == ""
    return next(iter(stage.context.groups[group_id].members))


@pytest.mark.parametrize("release", ["0.11.0.2", "2.8.2"])
def test_offsets_of_a_transaction_make_an_empty_group(release: str) -> None:
    """A TxnOffsetCommit to an absent group creates the group, Empty since the time of the request."""
    # Source: handleTxnCommitOffsets of GroupCoordinator.scala, currentStateTimestamp of GroupMetadata.scala (2.8).
    stage = coordinator(release)
    stage.advance(700)
    stage.handle(e.OffsetCommit("r", "g", "", -1, {T0: e.CommittedOffset(3)}, producer=7))
    group = stage.context.groups["g"]
    assert (group.state, group.state_timestamp_ms, group.protocol_type) == (EMPTY, 700, None)


@pytest.mark.parametrize("release", ["0.9.0.1", "2.8.2"])
def test_generation_0_is_a_generation(release: str) -> None:
    """An OffsetCommit with generation 0 for an absent group gets ILLEGAL_GENERATION; with -1 its offsets are stored."""
    # Source: handleCommitOffsets of GroupCoordinator.scala, `if (generationId < 0)` (0.9, 2.8).
    stage = coordinator(release)
    for label, generation in (("zero", 0), ("none", -1)):
        stage.handle(e.OffsetCommit(label, "g", "", generation, {T0: e.CommittedOffset(3)}))
    errors = [stage.answers[label].body.errors for label in ("zero", "none")]
    assert errors == [{T0: "ILLEGAL_GENERATION"}, {T0: "NONE"}]


@pytest.mark.parametrize("release", ["0.9.0.1", "2.8.2"])
def test_a_member_that_joins_again_is_parked(release: str) -> None:
    """Its JoinGroup is among the parked requests until the other member has joined too."""
    # Source: updateMemberAndRebalance of GroupCoordinator.scala (0.9, 2.8), which keeps the callback of the request.
    stage = coordinator(release)
    first = join(stage, "a", "g")
    join(stage, "b", "g")
    join(stage, "again", "g", first)
    second = stage.answers["b"].body.member_id
    stage.handle(e.SyncGroup("s", "g", first, 2, {first: b"1", second: b"2"}))
    assert dict(stage.driver.parked) == {}
    join(stage, "parked", "g", first)
    assert dict(stage.driver.parked) == {"parked": "join g"}
    join(stage, "last", "g", second)
    assert (dict(stage.driver.parked), stage.answers["parked"].body.generation) == ({}, 3)


def test_the_record_of_a_member_that_has_left_changes_nothing() -> None:
    """When the write of a static member's new id ends after the member has left, no request is answered and no group changes."""
    # Source: the callback of storeGroup in updateStaticMemberAndRebalance of GroupCoordinator.scala (2.8), where the callback of
    # the JoinGroup went with the member (removeMemberAndUpdateGroup).
    stage = coordinator()
    static_member_back(stage, "g")
    stage.handle(e.LeaveGroup("left", "g", (e.MemberIdentity("", "i"),)))
    group, answered, before = stage.context.groups["g"], set(stage.answers), len(stage.journal.records)
    assert group.members == {}
    stage.release_held("NONE")
    assert (stage.context.groups["g"], set(stage.answers)) == (group, answered)
    assert [record for record in of_kind(stage, "update", before) if record.fields["field"] == "groups"] == []  # type: ignore[arg-type]


def test_unloaded_groups_keep_their_own_writes() -> None:
    """Two groups that are unloaded while a static member's id is being written are both found when the writes end."""
    # Source: the callback of storeGroup in updateStaticMemberAndRebalance of GroupCoordinator.scala (2.8) holds its own group.
    stage = coordinator()
    new_ids = [static_member_back(stage, "g"), ""]
    stage.mode = "ok"
    held, stage.held = stage.held, []
    new_ids[1] = static_member_back(stage, "h")
    stage.held = held + stage.held
    stage.handle(e.PartitionResigned(0, 2))
    assert (stage.context.groups, len(stage.context.unloaded)) == ({}, 2)
    stage.release_held("NONE")
    assert [stage.answers[label].body.member_id for label in ("g3", "h3")] == new_ids
    assert stage.context.unloaded == {}
