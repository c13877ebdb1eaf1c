"""Topics as an operator creates them: counts, names and settings by the rules of Kafka's tool."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kcontrol import Lab
from kcontrol.cluster import topic_tool
from kcontrol.core.errors import UserError
from tests.lab.support import refusal

# (brokers 1 to n, partitions, replication factor, fixedStartIndex): what Kafka 2.8.2's own class answers.
PLACED = {
    (3, 3, 2, 0): [[1, 2], [2, 3], [3, 1]],
    (3, 7, 3, 1): [[2, 1, 3], [3, 2, 1], [1, 3, 2], [2, 3, 1], [3, 1, 2], [1, 2, 3], [2, 1, 3]],
    (5, 10, 3, 0): [[1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 1], [5, 1, 2], [1, 3, 4], [2, 4, 5], [3, 5, 1], [4, 1, 2], [5, 2, 3]],
    (5, 11, 3, 4): [[5, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 1], [5, 2, 3], [1, 3, 4], [2, 4, 5], [3, 5, 1], [4, 1, 2],
                    [5, 3, 4]],
    (1, 2, 1, 0): [[1], [1]],
    (4, 9, 4, 2): [[3, 2, 4, 1], [4, 3, 1, 2], [1, 4, 2, 3], [2, 1, 3, 4], [3, 4, 1, 2], [4, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 1],
                   [3, 1, 2, 4]],
    (2, 5, 2, 1): [[2, 1], [1, 2], [2, 1], [1, 2], [2, 1]],
}  # fmt: skip


@pytest.mark.parametrize("case", PLACED, ids=str)
def test_placement_is_that_of_kafkas_class(case: tuple[int, int, int, int]) -> None:
    """Each assignment is what kafka.admin.AdminUtils of 2.8.2 returns for brokers without racks."""
    # Made with the jars of Kafka 2.8.2 for Scala 2.13, in jshell --class-path 'JARS/2.8.2/*':
    # `AdminUtils.assignReplicasToBrokers(brokers, partitions, replicationFactor, fixedStartIndex, -1)`, where `brokers` is a Seq
    # of `new BrokerMetadata(id, Option.apply(null))` for the ids from 1 on. A fixed start index is the start and the shift.
    brokers, partitions, factor, start = case
    found = topic_tool.assign_replicas(range(1, brokers + 1), partitions, factor, start, start)
    assert [list(replicas) for replicas in found] == PLACED[case]


def test_counts_are_enough(opened: Callable[..., Lab]) -> None:
    """Three partitions with two replicas each are spread over the brokers, and each has a leader."""
    lab = opened(3).create_topic("x", partitions=3, replication_factor=2).run()
    found = lab.partitions()
    assert found.index.tolist() == ["x-0", "x-1", "x-2"]
    assert sorted(found.leader) == [1, 2, 3] and found.isr.map(len).tolist() == [2, 2, 2]


def test_the_seed_draws_the_placement(opened: Callable[..., Lab]) -> None:
    """One seed gives one placement; over 20 seeds both the start and the shift differ."""

    def placed(seed: int) -> list[list[int]]:
        lab = opened(4, seed=seed, runs=None).create_topic("x", partitions=4, replication_factor=2)
        return [list(replicas) for replicas in lab.run().partitions().replicas]

    assert placed(3) == placed(3)
    drawn = [placed(seed) for seed in range(20)]
    assert {found[0][0] for found in drawn} == {1, 2, 3, 4}
    assert {(found[0][1] - found[0][0]) % 4 for found in drawn} == {1, 2, 3}


def test_only_registered_brokers_get_replicas(opened: Callable[..., Lab]) -> None:
    """A broker that is dead gets no replica."""
    lab = opened(3).kill(2).run().create_topic("x", partitions=6, replication_factor=2).run()
    assert {broker for replicas in lab.partitions().replicas for broker in replicas} == {1, 3}


def test_the_run_can_be_played_again(opened: Callable[..., Lab]) -> None:
    """What was drawn is part of the act: a run with a counted topic that has settings is played again as it was."""
    lab = opened(3, data=True).create_topic("x", partitions=2, config={"min.insync.replicas": 2}).run()
    assert "broken" not in set(lab.tables.invariant_checks().outcome)
    again = lab.branch(at=len(lab.records) - 1)
    assert again.partitions().equals(lab.partitions()) and again.tables.znodes().equals(lab.tables.znodes())


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"partitions": 0}, "from 1 on, not 0 (Kafka's InvalidPartitionsException)"),
    ({"partitions": 2.5}, "from 1 on, not 2.5"),
    ({"partitions": True}, "from 1 on, not True"),
    ({"partitions": 3, "replication_factor": 0}, "from 1 on, not 0 (Kafka's InvalidReplicationFactorException)"),
    ({"partitions": 3, "replication_factor": 4}, "registered brokers, 3 (Kafka's InvalidReplicationFactorException)"),
    ({"partitions": 3, "assignment": [[1]]}, "both numbers and a list"),
    ({}, "partitions=3, replication_factor=2"),
    ({"assignment": [[1]], "config": {"min.insync.replicas": 0}}, "0 is no value of min.insync.replicas"),
    ({"assignment": [[1]], "config": {"min.insync.replicas": "two"}}, "whole numbers from 1"),
    ({"assignment": [[1]], "config": {"retention.ms": 1}}, "unclean.leader.election.enable, min.insync.replicas"),
    ({"assignment": [[1]], "config": 5}, "config cannot be 5"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "words"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_the_tool_refuses(opened: Callable[..., Lab], arguments: dict[str, object], words: str) -> None:
    """Counts and settings that Kafka's tool refuses are one sentence with what is legal, and nothing is written."""
    lab = opened(3, runs=None)
    before = len(lab.records)
    with pytest.raises(UserError) as problem:
        lab.create_topic("x", **arguments)  # type: ignore[arg-type]
    assert words in refusal(problem)
    assert len(lab.records) == before


@pytest.mark.parametrize("release", ["0.8.0", "0.8.1"])
def test_settings_before_there_were_any(opened: Callable[..., Lab], release: str) -> None:
    """min.insync.replicas came with 0.8.2: earlier releases refuse it for topics and for brokers."""
    lab = opened(1, release=release, runs=None)
    with pytest.raises(UserError) as problem:
        lab.create_topic("x", partitions=1, config={"min.insync.replicas": 1})
    assert "0.8.2" in refusal(problem)
    with pytest.raises(UserError) as problem:
        opened(1, release=release, config={"min.insync.replicas": 2})
    assert "0.8.2" in refusal(problem)


# ---------------------------------------------------------------- names

NAMES: list[tuple[object, str]] = [
    ("", "text of 1 to 249"), (None, "text of 1 to 249"), (3, "text of 1 to 249"), (".", "'.'"), ("..", "'..'"), ("a b", "' '"),
    ("a:b", "':'"), ("<img src=x>", "'<'"), ("a/b", "'/'"), ("a\x1b[31m", r"'\x1b'"), ("a\x00", r"'\x00'"),
    ("\ud800", r"'\ud800'"), ("\u00e9", r"'\xe9'"), ("a\n", r"'\n'"), ("a" * 250, "at most 249"), ("T_t", "T.t"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "words"), NAMES, ids=lambda value: ascii(value)[:20])
def test_names_that_kafka_refuses(opened: Callable[..., Lab], name: object, words: str) -> None:
    """A name that Kafka refuses is one printable sentence. Source: Topic.validate and Topic.hasCollision (2.8.2)."""
    lab = opened(1, runs=None).create_topic("T.t", [[1]]).run()
    with pytest.raises(UserError) as problem:
        lab.create_topic(name, [[1]])  # type: ignore[arg-type]
    assert words in refusal(problem) and refusal(problem).isprintable()


def test_the_longest_name_depends_on_the_release(opened: Callable[..., Lab]) -> None:
    """Up to 0.9 a name may have 255 characters, from 0.10 on 249; collisions are refused from 0.9 on."""
    # Source: Topic.validate (0.9.0.1, 0.10.0.0; KAFKA-3219), AdminUtils (0.8.2.2, 0.9.0.0).
    assert topic_tool.check_name("a" * 255, (), "0.9") == "a" * 255
    assert topic_tool.check_name("a_b", ["a.b"], "0.8.2") == "a_b"
    for name, others, release in (("a" * 256, (), "0.9"), ("a" * 250, (), "0.10.2"), ("a_b", ["a.b"], "0.9")):
        with pytest.raises(topic_tool.TopicRefused):
            topic_tool.check_name(name, others, release)


# ---------------------------------------------------------------- altering


def test_altering_keeps_the_other_settings(opened: Callable[..., Lab]) -> None:
    """A setting that is not named stays, and None takes one away."""
    lab = opened(1, runs=None).create_topic("x", [[1]], config={"min.insync.replicas": 2, "unclean.leader.election.enable": True})
    lab.run().alter_topic("x", {"min.insync.replicas": 1}).run()
    stored = '{"version":1,"config":{"min.insync.replicas":"1","unclean.leader.election.enable":"true"}}'
    assert lab.tables.znodes().text["/config/topics/x"] == stored
    lab.alter_topic("x", {"min.insync.replicas": None}).run()
    assert lab.tables.znodes().text["/config/topics/x"] == '{"version":1,"config":{"unclean.leader.election.enable":"true"}}'


@pytest.mark.parametrize(
    ("release", "notice"),
    [
        ("0.8.2", '"x"'),
        ("0.9", '{"version":1,"entity_type":"topics","entity_name":"x"}'),
        ("2.8", '{"version":2,"entity_path":"topics/x"}'),
    ],
)
def test_the_tool_notifies_brokers(opened: Callable[..., Lab], release: str, notice: str) -> None:
    """The tool leaves a notification below /config/changes in the format of the release."""
    # Source: AdminUtils.changeTopicConfig (0.8.2.2), getConfigChangeZnodeData (0.9.0.1), ConfigEntityChangeNotificationZNode
    # (2.8).
    lab = opened(1, release=release, runs=None, topics={"x": [[1]]}).alter_topic("x", {"min.insync.replicas": 1})
    assert lab.tables.znodes().text["/config/changes/config_change_0000000000"] == notice
