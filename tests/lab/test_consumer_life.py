"""Consumers with settings of their own, faults of their processes, and runs in which they send requests by themselves."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from copy import copy
from itertools import cycle
from typing import Any

import pytest

from kcontrol import rules
from kcontrol.core.errors import UserError
from kcontrol.core.model import TopicPartition
from kcontrol.group.assignors import Subscription, partitions_of
from kcontrol.group.offsets_topic_records import decode
from kcontrol.journal.fold import fold
from kcontrol.lab.lab import Lab
from tests.core.snapshots import without_defaults
from tests.lab.support import refusal

Opened = Callable[..., Lab]
RELEASES = ("0.9", "1.0", "2.4", "2.8", "3.9")
THREE = dict.fromkeys(("anna", "bert", "cleo"), "billing")
TOPICS = {"t": [[1, 2]] * 6, "__consumer_offsets": [[1, 2, 3]]}


def group_of(lab: Lab) -> dict[str, list[str]]:
    found = lab.tables.members()
    return dict(zip(found.client_id, found.partitions, strict=True))


def last_join(lab: Lab) -> Any:
    return next(r.fields["event"] for r in reversed(lab.records) if r.kind == "enqueue" and r.fields["event"].name == "JoinGroup")


def agrees(lab: Lab) -> None:
    assert without_defaults(fold(lab.records)) == without_defaults(lab._world.snapshot())


# ---------------------------------------------------------------- consumers run by themselves


@pytest.mark.parametrize("release", RELEASES)
def test_living_consumers_form_a_group(opened: Opened, release: str) -> None:
    """Three consumers get two partitions each, and only heartbeats are left; journal, fold, and a second play agree."""
    lab = opened(release=release, consumers=THREE, topics=TOPICS).run(alive=True)
    assert group_of(lab) == {"anna": ["t-0", "t-1"], "bert": ["t-2", "t-3"], "cleo": ["t-4", "t-5"]}
    before = len(lab.records)
    assert len(lab.run(alive=True).records) == before
    agrees(lab)
    again = lab.branch(at=lab.records[-1].id)
    assert [r.to_json() for r in again.records] == [r.to_json() for r in lab.records]


@pytest.mark.parametrize("release", RELEASES)
def test_living_consumers_find_a_coordinator_without_an_offsets_topic(opened: Opened, release: str) -> None:
    """Without an offsets topic the first consumer sends FindCoordinator, which creates the topic, and the group forms."""
    lab = opened(release=release, consumers=THREE, topics={"t": [[1, 2]] * 6}).run(alive=True)
    assert {client: len(owned) for client, owned in group_of(lab).items()} == dict.fromkeys(THREE, 2)
    assert [r.fields["action"] for r in lab.records if r.kind == "act"].count(["find_coordinator", "anna", 1]) == 1
    agrees(lab)


def test_living_consumers_wait_for_brokers_for_the_offsets_topic(opened: Opened) -> None:
    """With two of three replicas' brokers a run ends with COORDINATOR_NOT_AVAILABLE; with the third broker the group forms."""
    lab = opened(consumers=THREE, topics={"t": [[1, 2]] * 6}).kill(3).run().run(alive=True)
    assert {me["error"] for me in lab.state["consumers"].values()} == {"COORDINATOR_NOT_AVAILABLE"}
    before = len(lab.records)
    assert len(lab.run(alive=True).records) == before
    assert set(group_of(lab.start(3).run().run(alive=True))) == set(THREE)


def test_a_silent_member_is_removed_within_one_call(opened: Opened) -> None:
    """12 s after bert's process has stopped, its session of 10 s has ended; exactly 12 s have passed, and the others go on."""
    lab = opened(consumers=THREE, topics=TOPICS).run(alive=True)
    begun_ms = lab._world.now_ms
    lab.group.freeze_consumer("bert").run("12 s", alive=True)
    assert lab._world.now_ms == begun_ms + 12_000 + 1  # the freeze is a step of 1 ms
    assert list(group_of(lab)) == ["anna", "cleo"]
    assert group_of(lab.run(alive=True)) == {"anna": ["t-0", "t-1", "t-2"], "cleo": ["t-3", "t-4", "t-5"]}
    agrees(lab)


def test_a_consumer_that_thaws_has_its_old_id(opened: Opened) -> None:
    """Bert is removed while frozen; its next heartbeat has the old member id and gets UNKNOWN_MEMBER_ID, then it rejoins."""
    lab = opened(consumers=THREE, topics=TOPICS).run(alive=True)
    old = lab.state["consumers"]["bert"]["member_id"]
    lab.group.freeze_consumer("bert").run(alive=True).group.thaw_consumer("bert")
    assert lab.state["consumers"]["bert"]["member_id"] == old
    assert lab.group.heartbeat("bert").run().state["consumers"]["bert"]["error"] == "UNKNOWN_MEMBER_ID"
    lab.run(alive=True)
    assert set(group_of(lab)) == set(THREE) and lab.state["consumers"]["bert"]["member_id"] not in ("", old)


def test_a_pause_that_is_too_long(opened: Opened) -> None:
    """A pause of 6 s keeps a member with a session of 10 s and a heartbeat at the end of the pause; a pause of 14 s does not."""
    for pause_ms, generation in ((6_000, 1), (14_000, 3)):
        lab = (
            opened(consumers=THREE, topics=TOPICS).run(alive=True).group.freeze_consumer("bert", pause_ms).run("30 s", alive=True)
        )
        assert set(lab.tables.members().generation) == {generation} and set(group_of(lab)) == set(THREE)


def test_heartbeats_without_join_in_0_9(opened: Opened) -> None:
    """In PreparingRebalance of 0.9 a heartbeat gets 27 and does not restart the session, so the member is removed."""
    # Source: reference of handleHeartbeat of GroupCoordinator.scala (0.9): the row of GROUP_REACTIONS until 0.10.1.
    lab = opened(release="0.9", consumers=THREE, topics=TOPICS).group.freeze_consumer("bert").run(alive=True)
    lab.group.stop_polling("cleo").group.thaw_consumer("bert").run("45 s", alive=True)
    assert set(group_of(lab)) == {"anna", "bert"}
    assert "poll timeout" not in [r.fields["action"][-1] for r in lab.records if r.kind == "act"]


def test_a_consumer_that_does_not_poll_leaves(opened: Opened) -> None:
    """In 2.8 a consumer that sends heartbeats only stays for max.poll.interval.ms, then it leaves (KIP-62)."""
    polling = {"group.id": "billing", "max.poll.interval.ms": 20_000}
    lab = opened(consumers=THREE | {"cleo": polling}, topics=TOPICS).run(alive=True)
    lab.group.stop_polling("cleo").run("19 s", alive=True)
    assert "cleo" in group_of(lab)
    assert "cleo" not in group_of(lab.run(alive=True))
    assert lab.journal("act").action.tolist()[-1] != ["heartbeat", "cleo"]


def test_a_group_follows_its_coordinator(opened: Opened) -> None:
    """After the coordinator has stopped, living consumers find the next one and stay in their generation."""
    lab = opened(consumers=THREE, topics=TOPICS).run(alive=True).terminate(1).run(alive=True)
    assert set(lab.tables.members().coordinator) == {2} and set(lab.tables.members().generation) == {1}
    assert {me["coordinator"][0] for me in lab.run("5 s", alive=True).state["consumers"].values()} == {2}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_random_lives_are_in_the_journal(opened: Opened, release: str, seed: int) -> None:
    """Under random faults the fold equals the snapshot, a fork has the same fingerprint, and no handler raises."""
    chance = random.Random(seed)
    strategies = ["range", "roundrobin"] if release == "0.9" else ["cooperative-sticky"]
    consumers = {name: {"group.id": "billing", "partition.assignment.strategy": strategies} for name in THREE}
    lab = opened(release=release, consumers=consumers, topics=TOPICS)
    kinds = ("freeze_consumer", "thaw_consumer", "stop_polling", "start_polling", "restart", "leave", "wait")
    for _ in range(25):
        kind, name = chance.choice(kinds), chance.choice(sorted(THREE))
        try:
            lab.step((kind, name) if kind != "wait" else ("wait", 500))
        except UserError:
            continue
        lab.run(f"{chance.randint(1, 9)} s", alive=True)
        agrees(lab)
    assert [r.fields for r in lab.records if r.kind == "handler_error"] == []
    assert lab._world.fork().fingerprint() == lab._world.fingerprint()


def test_times_of_consumers_are_no_state(opened: Opened) -> None:
    """Two worlds that differ in the time of a heartbeat alone have one fingerprint."""
    lab = opened(consumers=THREE, topics=TOPICS).run(alive=True)
    later = lab.branch().step(("wait", 777))
    for one in (lab, later):
        one.group.heartbeat("anna").run()
    assert later._world.fingerprint() == lab._world.fingerprint()


# ---------------------------------------------------------------- a learner's assignor


def backwards(partitions: Mapping[str, int], members: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
    """An assignor that gives the partitions, the last one first, to the members in turn."""
    every = reversed(partitions_of(partitions, "t"))
    found: dict[str, list[TopicPartition]] = {id: [] for id in sorted(members)}
    for id, tp in zip(cycle(found), every, strict=False):
        found[id].append(tp)
    return found


def test_a_learners_assignor_takes_the_place_of_kafkas(opened: Opened) -> None:
    """With strategies={"assignor": mine} the group has the assignment of this function, also in a branch that plays it again."""
    lab = opened(consumers=THREE, topics=TOPICS, strategies={"assignor": backwards}).run(alive=True)
    assert group_of(lab) == {"anna": ["t-5", "t-2"], "bert": ["t-4", "t-1"], "cleo": ["t-3", "t-0"]}
    assert group_of(lab.branch(at=lab.records[-1].id)) == group_of(lab)
    agrees(lab)


def test_a_failing_assignor_is_one_sentence_and_no_step(opened: Opened) -> None:
    """An assignor that raises ends the run in one sentence with its name and line, and the cluster has made no step."""

    def failing(partitions: Any, members: Any) -> Any:
        return members[7]

    lab = opened(consumers=THREE, topics=TOPICS, strategies={"assignor": failing})
    sentences, lengths = list[str](), list[int]()
    for _ in range(2):
        with pytest.raises(UserError) as refused:
            lab.run(alive=True)
        sentences.append(refusal(refused))
        lengths.append(len(lab.records))
    number = failing.__code__.co_firstlineno + 1
    assert sentences == [f"The assignor 'failing' raised KeyError: 7 (line {number}: return members[7])."] * 2
    assert lengths[0] == lengths[1]
    agrees(lab)


# ---------------------------------------------------------------- settings


def test_settings_are_in_the_requests(opened: Opened) -> None:
    """JoinGroup has the strategies in their order, both timeouts, the topics and the user data of the consumer's settings."""
    mine = {
        "group.id": "billing", "partition.assignment.strategy": ["roundrobin", "range"], "topics": ["t"], "user.data": "rack 1",
        "session.timeout.ms": 7_000, "max.poll.interval.ms": 9_000, "group.instance.id": "A",
    }  # fmt: skip
    asked = last_join(opened(consumers={"anna": mine}, topics=TOPICS | {"u": [[1]]}).group.join("anna").run())
    assert [protocol.name for protocol in asked.protocols] == ["roundrobin", "range"]
    assert (asked.session_timeout_ms, asked.rebalance_timeout_ms, asked.instance_id) == (7_000, 9_000, "A")
    said = {"topics": ["t"], "user_data": b"rack 1", "owned": []}
    assert [decode("subscription", protocol.metadata) for protocol in asked.protocols] == [(1, said)] * 2


@pytest.mark.parametrize(
    ("release", "session_ms", "rebalance_ms", "names", "knows_79"),
    [
        ("0.9", 30_000, 30_000, ["range"], False), ("1.0", 10_000, 300_000, ["range"], False),
        ("2.8", 10_000, 300_000, ["range"], True), ("3.9", 45_000, 300_000, ["range", "cooperative-sticky"], True),
    ],
)  # fmt: skip
def test_defaults_and_versions_follow_the_release(
    opened: Opened, release: str, session_ms: int, rebalance_ms: int, names: list[str], knows_79: bool
) -> None:
    """A client has the defaults and request versions of its release, on brokers of its release and on those of 3.9."""
    # Source: ConsumerConfig.java of each release; JoinGroupRequest.json, versions 0 (0.9), 1 (0.10.1) and 4 (2.2).
    for brokers in {release, "3.9"}:
        lab = opened(release=brokers, consumers={"anna": {"group.id": "billing", "client.release": release}}, topics=TOPICS)
        asked = last_join(lab.group.join("anna").run())
        assert (asked.session_timeout_ms, asked.rebalance_timeout_ms, asked.requires_known_id) == (
            session_ms,
            rebalance_ms,
            knows_79,
        )
        assert [protocol.name for protocol in asked.protocols] == names


def test_a_class_name_and_a_list_as_text(opened: Opened) -> None:
    """The strategy can be given as in a properties file: names of classes, separated by commas."""
    text = "org.apache.kafka.clients.consumer.StickyAssignor, org.apache.kafka.clients.consumer.RangeAssignor"
    lab = opened(consumers={"a": {"group.id": "g", "partition.assignment.strategy": text}}, topics=TOPICS)
    assert [protocol.name for protocol in last_join(lab.group.join("a").run()).protocols] == ["sticky", "range"]


WRONG: list[tuple[str, Mapping[str, Any], str]] = [
    ("2.8", {"boo": 1}, "session.timeout.ms"),
    ("0.9", {"max.poll.interval.ms": 9}, "a consumer of Kafka 0.9 has"),
    ("2.8", {"partition.assignment.strategy": "stickie"}, "range, roundrobin, sticky and cooperative-sticky"),
    ("2.8", {"partition.assignment.strategy": []}, "one or more of"),
    ("0.9", {"partition.assignment.strategy": "sticky"}, "came in 0.11.0"),
    ("2.8", {"partition.assignment.strategy": "sticky", "client.release": "0.10.2"}, "came in 0.11.0"),
    ("2.8", {"session.timeout.ms": "10s"}, "whole number of milliseconds"),
    ("2.8", {"session.timeout.ms": 2_000}, "heartbeat.interval.ms 3000"),
    ("2.8", {"topics": [5]}, "names of topics"),
    ("2.8", {"user.data": 5}, "bytes or text"),
    ("2.8", {"client.release": "0.8.2"}, "from 0.9 on"),
    ("2.8", {"client.release": "boo"}, "from 0.9 on"),
]


@pytest.mark.parametrize(("release", "given", "says"), WRONG)
def test_wrong_settings_are_refused(opened: Opened, release: str, given: Mapping[str, Any], says: str) -> None:
    """A setting that the consumer does not have, or an illegal value, is refused in one sentence with the legal ones."""
    with pytest.raises(UserError) as problem:
        opened(release=release, consumers={"anna": {"group.id": "billing"} | dict(given)})
    assert says in refusal(problem)


# ---------------------------------------------------------------- input that Kafka refuses, or that is none


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"session.timeout.ms": 1_800_001}, "INVALID_SESSION_TIMEOUT"),
        ({"session.timeout.ms": 5_999}, "INVALID_SESSION_TIMEOUT"),
        ({"group.id": ""}, "INVALID_GROUP_ID"),
    ],
)
def test_kafkas_code_for_a_refused_join(opened: Opened, given: Mapping[str, Any], error: str) -> None:
    """A session timeout out of the coordinator's bounds and an empty group id get Kafka's error, and no group comes to be."""
    lab = opened(consumers={"anna": {"group.id": "billing"} | dict(given)}, topics=TOPICS).run(alive=True)
    assert lab.state["consumers"]["anna"]["error"] == error and lab.tables.members().empty


def test_kafkas_code_for_an_oversized_text(opened: Opened) -> None:
    """A commit whose metadata text is longer than offset.metadata.max.bytes gets OFFSET_METADATA_TOO_LARGE; nothing is stored."""
    lab = opened(consumers=THREE, topics=TOPICS).run(alive=True)
    lab.commit("anna", "t-0", 5, "x" * 4_097).run()
    assert lab.state["consumers"]["anna"]["error"] == "OFFSET_METADATA_TOO_LARGE" and lab.tables.offsets().empty
    assert lab.commit("anna", "t-0", 5, "x" * 4_096).run().tables.offsets()["offset"].tolist() == [5]


NOT_POSSIBLE: list[tuple[tuple[Any, ...], str]] = [
    (("dance", "anna"), "There is no action"),
    (("join", "dora"), "anna, bert and cleo"),
    (("join", "anna", "one"), "running brokers: 1, 2 and 3"),
    (("join", "anna", 9), "running brokers: 1, 2 and 3"),
    (("commit", "anna", "t", 5), "does not have the form"),
    (("commit", "anna", "t-0", 5, 7), "does not have the form"),
    (("commit", "anna", "t-0", "5"), "does not have the form"),
    (("find_coordinator", "anna", 9), "running brokers: 1, 2 and 3"),
    (("find_coordinator", "dora", 1), "anna, bert and cleo"),
    (("freeze_consumer", "dora"), "anna, bert and cleo"),
    (("freeze_consumer", "anna", 0), "from 1 on"),
    (("thaw_consumer", "anna"), "freeze it"),
    (("freeze_consumer", "anna", 2**31), "at most 2147483647"),
    (("wait", -1), "milliseconds from 1 on, at most 2147483647, not -1"),
    (("wait", 2**31), "milliseconds from 1 on, at most 2147483647"),
    (("commit", "anna", "t-00", 5), "does not have the form"),
    (("commit", "anna", "t-2147483648", 5), "does not have the form"),
    (("commit", "anna", "t-0", 5, "é" * 16_384), "does not have the form"),
]


@pytest.mark.parametrize(("action", "says"), NOT_POSSIBLE)
def test_what_a_consumer_cannot_do(opened: Opened, action: tuple[Any, ...], says: str) -> None:
    """An action that no consumer can do now is refused in one sentence, and nothing changes."""
    lab = opened(consumers=THREE, topics=TOPICS)
    before = len(lab.records)
    with pytest.raises(UserError) as problem:
        lab.step(action)
    assert says in refusal(problem) and len(lab.records) == before


def test_a_frozen_consumer_sends_nothing(opened: Opened) -> None:
    """A frozen consumer can neither send a request nor be frozen again nor stop polling; the sentence says to thaw it."""
    lab = opened(consumers=THREE, topics=TOPICS).group.freeze_consumer("anna")
    before = len(lab.records)
    for command in (lab.group.join, lab.group.freeze_consumer, lab.group.stop_polling):
        with pytest.raises(UserError) as problem:
            command("anna")
        assert "thaw" in refusal(problem) and len(lab.records) == before


def test_the_offsets_topic_is_named_where_it_is_missing(opened: Opened) -> None:
    """Without the offsets topic no consumer can join, and the sentence has the request after which the consumer can join."""
    lab = opened(consumers=THREE)
    with pytest.raises(UserError) as problem:
        lab.group.join("anna")
    assert "send FindCoordinator to one" in refusal(problem)
    lab.group.find_coordinator("anna", 1).run().group.join("anna")


@pytest.mark.parametrize(
    ("settings", "arguments", "says"),
    [
        ({}, {"alive": True}, "simulated world with consumers"),
        ({"consumers": THREE}, {"until": "12 s"}, "alive=True"),
        ({"consumers": THREE}, {"until": "12 hours", "alive": True}, "12 hours"),
        ({"consumers": THREE}, {"until": "12 hours", "alive": True}, "a duration such as '12 s'"),
        ({"consumers": THREE}, {"until": "99999999999999999999 s", "alive": True}, "at most 2147483 s"),
        ({"consumers": THREE}, {"until": f"{'9' * 5_000} ms", "alive": True}, "at most 2147483647 ms"),
    ],
)
def test_runs_that_are_none(opened: Opened, settings: Mapping[str, Any], arguments: Mapping[str, Any], says: str) -> None:
    """A run with `alive` needs consumers, and a duration needs living consumers; the refusal is one sentence."""
    lab = opened(1, **settings)
    with pytest.raises(UserError) as problem:
        lab.run(**arguments)
    assert says in refusal(problem)


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_a_group_that_cannot_be_stored_ends_the_run(opened: Opened, release: str) -> None:
    """The store fails as long as a replica is frozen: one sentence names the group and a duration, and the records stay."""
    lab = opened(release=release, consumers=THREE, topics=TOPICS).run(alive=True)
    lab.freeze(3).group.leave("anna").run()
    before = len(lab.records)
    with pytest.raises(UserError) as problem:
        lab.run(alive=True)
    assert refusal(problem).startswith("Group billing has not come to rest") and 'lab.run("60 s", alive=True)' in refusal(problem)
    assert len(lab.records) > before + 100 and len(lab.tables.rebalances()) > 5
    agrees(lab)


def test_a_group_whose_records_are_too_large_ends_the_run(opened: Opened) -> None:
    """A store that fails at once, because it is larger than a segment, ends the run after a number of rebalances."""
    lab = opened(1, consumers=THREE, topics={"__consumer_offsets": [[1]]}, config={"offsets.topic.segment.bytes": 100})
    with pytest.raises(UserError) as problem:
        lab.run(alive=True)
    assert "131 rebalances have begun" in refusal(problem)


def test_a_long_pause_is_waited_for(opened: Opened) -> None:
    """A run without a duration goes on until a consumer thaws, also after the time in which a group must come to rest."""
    times = {"session.timeout.ms": 6_000, "max.poll.interval.ms": 10_000}
    lab = opened(consumers={name: {"group.id": "g"} | times for name in THREE}, topics=TOPICS).run(alive=True)
    lab.group.freeze_consumer("bert", 60_000).run(alive=True)
    assert lab._world.now_ms > 60_000 and lab.state["consumers"]["bert"]["condition"] == "polling"


# ---------------------------------------------------------------- coordinators


def test_an_old_coordinator_refuses(opened: Opened) -> None:
    """A request to a broker that is not the coordinator gets NOT_COORDINATOR, then the consumer finds its coordinator again."""
    lab = opened(consumers=THREE, topics=TOPICS).run(alive=True)
    lab.group.heartbeat("anna", broker=2).run()
    me = lab.state["consumers"]["anna"]
    assert (me["error"], me["coordinator"], me["generation"]) == ("NOT_COORDINATOR", None, 1)
    assert lab.group.heartbeat("anna").run().state["consumers"]["anna"]["coordinator"][0] == 1


def test_a_consumer_finds_its_coordinator(opened: Opened) -> None:
    """FindCoordinator names the leader of the group's partition; a broker without the offsets topic has none to name."""
    # Source: handleFindCoordinatorRequest of KafkaApis.scala (2.8).
    lab = opened(consumers=THREE, topics=TOPICS).group.find_coordinator("anna", 3)
    assert (lab.state["consumers"]["anna"]["error"], lab.state["consumers"]["anna"]["coordinator"][0]) == ("NONE", 1)
    early = opened(consumers=THREE).group.find_coordinator("anna", 3)
    assert early.state["consumers"]["anna"]["error"] == "COORDINATOR_NOT_AVAILABLE"
    agrees(lab)


# ---------------------------------------------------------------- the offsets topic of a lab


def of_offsets(partitions: int) -> dict[str, Any]:
    return {"t": [[1]], "__consumer_offsets": [[1]] * partitions}


def test_groups_are_spread_over_the_topics_partitions(opened: Opened) -> None:
    """Without the setting a lab counts the partitions that `topics` gives the offsets topic, also after a restart."""
    groups = {name: name for name in ("g1", "g2", "g3", "g4")}
    lab = opened(1, topics=of_offsets(5), consumers=groups).run(alive=True)
    logs, found = lab.state["logs"]["1"], lab.tables.coordinators()["groups"].to_dict()
    assert {tp: len(groups) for tp, groups in found.items()} == {tp: min(1, len(logs[tp]["records"])) for tp in found}
    lab.kill(1).run().start(1).run()
    assert lab.tables.coordinators()["groups"].to_dict() == found


@pytest.mark.parametrize("asked", [1, 3])
def test_two_numbers_of_partitions_are_refused(opened: Opened, asked: int) -> None:
    """A setting that contradicts `topics` is refused with both numbers; an equal number is legal."""
    with pytest.raises(UserError) as problem:
        opened(1, topics=of_offsets(5), consumers=THREE, config={"offsets.topic.num.partitions": asked})
    assert f"offsets.topic.num.partitions is {asked}, but topics has 5" in refusal(problem)
    opened(1, topics=of_offsets(asked), consumers=THREE, config={"offsets.topic.num.partitions": asked})


def test_a_missing_partition_of_the_offsets_topic_is_named(opened: Opened) -> None:
    """If a group's partition does not exist, the sentence names the partition and the setting."""
    lab = opened(1, consumers={"a": "g1"}, config={"offsets.topic.num.partitions": 7})
    lab.create_topic("__consumer_offsets", [[1]]).run()
    with pytest.raises(UserError) as problem:
        lab.group.join("a")
    assert "__consumer_offsets-1" in refusal(problem) and "num.partitions 7" in refusal(problem)


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_a_segment_that_no_topic_can_have(opened: Opened, release: str) -> None:
    """Kafka's brokers take a segment of 1 byte, but its topics take 14 at least, so a lab takes 14 at least."""
    with pytest.raises(UserError) as problem:
        opened(1, release, consumers=THREE, config={"offsets.topic.segment.bytes": 13})
    assert "whole numbers from 14 to 2147483647" in refusal(problem) and "a broker of Kafka also takes 1 to 13" in refusal(
        problem
    )
    opened(3, release, topics=TOPICS, consumers=THREE, config={"offsets.topic.segment.bytes": 14})


# ---------------------------------------------------------------- values that do not fit the fields of Kafka's protocol


TOO_LARGE: list[tuple[Callable[[Lab], Any], str]] = [
    (lambda lab: lab.commit("anna", "t-99999999999", 5), "a number from 0 to 2147483647"),
    (lambda lab: lab.commit("anna", f"t-{'9' * 5_000}", 5), "a number from 0 to 2147483647"),
    (lambda lab: lab.commit("anna", "t-00", 5), "without leading zeros"),
    (lambda lab: lab.commit("anna", f"{'t' * 32_766}-0", 5), "at most 32,767 bytes of UTF-8, not 32,768"),
    (lambda lab: lab.commit("anna", "t-0", 5, "é" * 16_384), "at most 32,767 bytes of UTF-8, not 32,768"),
    (lambda lab: lab.group.describe_group("g" * 32_768), "at most 32,767 bytes of UTF-8"),
    (lambda lab: lab.group.delete_offsets("billing", "t-00"), "without leading zeros"),
]


@pytest.mark.parametrize(("command", "says"), TOO_LARGE)
def test_a_value_that_fits_no_field_is_refused(opened: Opened, command: Callable[[Lab], Any], says: str) -> None:
    """A number of a partition and a text that are too large are refused where they come in, and nothing changes."""
    lab = opened(1, topics=of_offsets(1), consumers=THREE, config={"offset.metadata.max.bytes": 100_000}).run(alive=True)
    before = len(lab.records)
    with pytest.raises(UserError) as problem:
        command(lab)
    assert says in refusal(problem) and len(lab.records) == before


@pytest.mark.parametrize(("name", "group", "most"), [("a", "g" * 32_768, "32,767"), ("a" * 32_731, "g", "32,730")])
def test_an_identity_that_fits_no_field_is_refused(opened: Opened, name: str, group: str, most: str) -> None:
    """A group id has 32,767 bytes at most, and a name 32,730, since the member id has 37 more; the longest ones work."""
    with pytest.raises(UserError) as problem:
        opened(1, consumers={name: group})
    assert f"at most {most} bytes" in refusal(problem) and len(refusal(problem)) < 300
    lab = opened(1, topics=of_offsets(1), consumers={name[:32_730]: group[:32_767]}).run(alive=True)
    lab.commit(name[:32_730], "t-0", 5).run()
    assert set(lab.tables.members().state) == {"Stable"} and not [r for r in lab.records if r.kind == "handler_error"]


# ---------------------------------------------------------------- timers and names


def test_the_timer_that_no_run_fires_stands_last(opened: Opened) -> None:
    """The first row of the timers fires next; the controller's check of preferred leaders is last and has no time left."""
    lab = opened(1, topics=of_offsets(1), consumers={"a": "g"}).run("60 s", alive=True)
    found = lab.tables.timers()
    assert (found.in_ms.dropna() >= 0).all() and found.in_ms.dropna().is_monotonic_increasing
    assert found.timer.iloc[-1] == "auto-leader-rebalance" and found.in_ms.isna().tolist() == [False] * (len(found) - 1) + [True]
    assert "auto-leader-rebalance" in lab.fire_timer(1, "auto-leader-rebalance").run().tables.timers().timer.tolist()


def test_a_command_that_is_none_is_one_sentence(opened: Opened) -> None:
    """An unknown name in a namespace lists the commands; completion and copies work as before."""
    lab = opened(1, consumers={"a": "g"})
    with pytest.raises(UserError) as problem:
        lab.group.dance("a")  # type: ignore[attr-defined]
    assert refusal(problem).startswith("There is no lab.group.dance; it has delete_groups, delete_offsets, describe_group,")
    assert not hasattr(lab.zk, "dance") and not hasattr(lab.zk, "_repr_html_") and "join" in dir(copy(lab.group))


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_a_member_without_topics_gets_no_partition(opened: Opened, strategy: str) -> None:
    """A consumer that subscribes to no topic is a member without partitions, as with a pattern that no topic matches."""
    settings = {"group.id": "g", "partition.assignment.strategy": strategy}
    lab = opened(consumers={"a": settings | {"topics": []}, "b": settings}, topics=TOPICS).run(alive=True)
    assert {name: len(partitions) for name, partitions in group_of(lab).items()} == {"a": 0, "b": 6}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: rules.source("group"), "name a function as group.<module>.<function>"),
        (lambda: rules.trials({"mine": None}, runs=0), "a whole number from 1 on, not 0"),
        (lambda: rules.trials(assignors={}), "name at least one rule or assignor"),
        (lambda: rules.trials({}), "name at least one rule or assignor"),
    ],
)
def test_nothing_to_show_is_one_sentence(call: Callable[[], Any], says: str) -> None:
    """A module without a function, no run, and no rule to try are refused with the legal form."""
    with pytest.raises(UserError) as problem:
        call()
    assert says in refusal(problem)
