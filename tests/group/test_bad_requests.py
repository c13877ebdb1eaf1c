"""Bad requests of clients: Kafka's error, or one sentence that says what is possible, and unchanged state of the coordinator."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.cluster.consumer_state import error_of
from kcontrol.cluster.world import World
from kcontrol.core.errors import UserError
from kcontrol.group.model import GroupState
from kcontrol.group.offsets_topic_records import decode
from tests.core.support import settle
from tests.group.test_coordinators_in_a_cluster import fire, stable
from tests.group.test_offsets_log import logs

JOIN = {"group": "g", "member": "", "session": 10_000, "type": "consumer", "protocols": [["range", ""]]}
LONGEST = {"0.9": 30_000, "2.8": 1_800_000}

# fmt: off
BAD: list[tuple[str, dict[str, Any], str]] = [
    # request      fields                                                                      error
    ("JoinGroup",    JOIN | {"session": 5_999},                                               "INVALID_SESSION_TIMEOUT"),
    ("JoinGroup",    JOIN | {"session": "longest + 1"},                                       "INVALID_SESSION_TIMEOUT"),
    ("JoinGroup",    JOIN | {"group": ""},                                                    "INVALID_GROUP_ID"),
    ("JoinGroup",    JOIN | {"member": "ghost"},                                              "UNKNOWN_MEMBER_ID"),
    ("JoinGroup",    JOIN | {"type": "connect"},                                              "INCONSISTENT_GROUP_PROTOCOL"),
    ("JoinGroup",    JOIN | {"protocols": [["unheard-of", "00"]]},                            "INCONSISTENT_GROUP_PROTOCOL"),
    ("SyncGroup",    {"group": "g", "member": "ghost", "gen": 1},                             "UNKNOWN_MEMBER_ID"),
    ("Heartbeat",    {"group": "g", "member": "ghost", "gen": 1},                             "UNKNOWN_MEMBER_ID"),
    ("LeaveGroup",   {"group": "g", "members": [{"member": "ghost"}]},                        "UNKNOWN_MEMBER_ID"),
    ("OffsetCommit", {"group": "other", "gen": -1, "offsets": {"t-0": 7}, "metadata": {"t-0": "m" * 4_097}},
                                                                                              "OFFSET_METADATA_TOO_LARGE"),
]
SENTENCES: list[tuple[tuple[Any, ...], str]] = [
    # action                                                     part of the sentence
    (("join", "zoe"),                               "zoe"),
    (("dance", "a"),                                            "There is no action"),
    (("commit", "a", "t", 7),                                   "consumer, partition, offset"),
    (("coordinator_request", "a", "Dance", 0, {"group": "g"}),  "client, api, version, request"),
    (("coordinator_request", "a", "JoinGroup", 0, {"group": "g"}), "client, api, version, request"),
    (("coordinator_request", "a", "SyncGroup", 0, {"group": "g", "member": "m", "gen": 1, "assignment": {"m": "0g"}}),
                                                                "client, api, version, request"),
]
# fmt: on
WORLDS = {release: stable(release) for release in LONGEST}


def memory(world: World) -> tuple[Any, ...]:
    """The coordinator's groups without those without members, its offsets, and its timers."""
    driver = world.processes[1].driver
    assert driver.group
    groups = {name: group for name, group in driver.group.groups.items() if group.members}
    committed = {name: held.committed for name, held in driver.group.offsets.items() if held.committed}
    return groups, committed, {name: timer.at_ms for name, timer in driver.timers.items()}


def asked(world: World, api: str, fields: dict[str, Any]) -> Any:
    """Return the response to a request of version 0, which a coordinator that waits for more members gives after its timer."""
    before = len(world.journal)
    settle(world, ("coordinator_request", "a", api, 0, fields))
    if f"join {fields['group']}" in world.processes[1].driver.timers:
        fire(world, f"join {fields['group']}")
    (body,) = [r.fields["body"] for r in world.journal.records[before:] if r.kind == "respond"]
    return body


@pytest.mark.parametrize("release", WORLDS)
@pytest.mark.parametrize(("api", "fields", "error"), BAD)
def test_a_bad_request_has_kafkas_error_and_changes_nothing(release: str, api: str, fields: dict[str, Any], error: str) -> None:
    """The response has the error that Kafka gives, and groups with members, offsets and timers are those from before."""
    # Source: GroupCoordinator.scala: handleJoinGroup, doJoinGroup, doSyncGroup, handleHeartbeat, handleLeaveGroup, and
    # GroupMetadataManager.scala: storeOffsets (0.9, 2.8).
    world = WORLDS[release].fork()
    before = memory(world)
    asked = fields | ({"session": LONGEST[release] + 1} if fields.get("session") == "longest + 1" else {})
    settle(world, ("coordinator_request", "a", api, 0, asked))
    (body,) = [r.fields["body"] for r in world.journal.records[len(WORLDS[release].journal) :] if r.kind == "respond"]
    assert error_of(body) == error
    assert memory(world) == before


UNREADABLE = {"a topic is missing": "00000000000200017400000000", "a negative version": "ffff", "no bytes": ""}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("release", WORLDS)
def test_the_coordinator_stores_bytes_that_it_cannot_read(release: str, data: str) -> None:
    """JoinGroup and SyncGroup with such bytes get no error, and the log and the response have the bytes."""
    # Only 2.8 reads subscriptions: it then knows no topics. Source: GroupMetadata.scala: add (0.9), computeSubscribedTopics
    # (2.8), GroupCoordinator.scala: doSyncGroup (0.9, 2.8). `client_bytes` has the answers of Kafka's own clients for these.
    world = WORLDS[release].fork()
    joined = asked(world, "JoinGroup", JOIN | {"group": "other", "protocols": [["range", data]]})
    assert joined.error == "NONE" and joined.members == ((joined.member_id, bytes.fromhex(data)),)
    mine = {"group": "other", "member": joined.member_id, "gen": joined.generation}
    synced = asked(world, "SyncGroup", mine | {"assignment": {joined.member_id: data}})
    assert synced.error == "NONE" and synced.assignment == bytes.fromhex(data)
    group = memory(world)[0]["other"]
    assert (group.state, group.subscribed_topics) == (GroupState.STABLE, None)
    (stored,) = [record.data for record in logs(world)[1].records if b"other" in record.key]
    assert [(m["subscription"], m["assignment"]) for m in decode("group_value", stored)[1]["members"]] == [
        (bytes.fromhex(data),) * 2
    ]
    if release == "2.8":
        deleted = asked(world, "OffsetDelete", {"group": "other", "partitions": ["t-0"]})
        assert error_of(deleted) == "GROUP_SUBSCRIBED_TO_TOPIC"


@pytest.mark.parametrize("release", WORLDS)
@pytest.mark.parametrize(("action", "part"), SENTENCES)
def test_an_impossible_action_is_refused_in_one_sentence(release: str, action: tuple[Any, ...], part: str) -> None:
    """The error says what the action's form is or what is not there; the world is as before."""
    world = WORLDS[release].fork()
    before = memory(world), world.fingerprint()
    with pytest.raises(UserError) as refused:
        world.step(action)
    assert part in str(refused.value) and str(refused.value).count(". ") == 0
    assert (memory(world), world.fingerprint()) == before
