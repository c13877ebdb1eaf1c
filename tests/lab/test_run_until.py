"""Sentences up to which a lab runs, and what the lab says about reassignments that come to nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.lab.support.run_until import PATTERNS, SENTENCES
from tests.lab.support import refusal


def test_a_new_topic_gets_its_leader(opened: Callable[..., Lab]) -> None:
    """The run stops at the step that writes the state znode, before brokers have been asked."""
    lab = opened(3, runs=None).create_topic("t", [[1, 2]]).run(until="t-0 has a leader")
    assert lab.partitions().leader["t-0"] == 1
    assert any(lab._world.actions()) and "t-0" not in lab.state["nodes"]["2"]["broker"].get("hosted", {})


def test_the_death_of_a_leader(opened: Callable[..., Lab]) -> None:
    """A dead leader does not count, so the run goes on to the election; without another replica there is no leader."""
    lab = opened(3, runs=None, topics={"t": [[2, 3]], "u": [[2]]})
    assert lab.kill(2).run(until="t-0 has a leader").partitions().leader["t-0"] == 3
    assert lab.run(until="u-0 has no leader").partitions().leader["u-0"] == -1


def test_back_in_sync(opened: Callable[..., Lab]) -> None:
    """The run stops when the ISR has every replica again."""
    lab = opened(3, runs=None, topics={"t": [[1, 2, 3]]}).kill(3).run()
    assert lab.partitions().isr["t-0"] == [1, 2]
    assert sorted(lab.start(3).run(until="t-0 is fully in sync").partitions().isr["t-0"]) == [1, 2, 3]


def test_the_controller_changes(opened: Callable[..., Lab]) -> None:
    """The znode goes with the session, and the next controller is a broker that runs."""
    lab = opened(3, runs=None).kill(1).run(until="there is no controller")
    assert "/controller" not in lab.tables.znodes().index
    lab.run(until="there is a controller")
    (ruler,) = {n for n in (2, 3) if f'"brokerid":{n}' in lab.tables.znodes().text["/controller"]}
    lab.run(until=f"broker {ruler} is controller")
    assert lab.run(until="broker 1 is unregistered").start(1).run(until="broker 1 is registered")


def test_a_topic_comes_and_goes(opened: Callable[..., Lab]) -> None:
    """`until` reaches the end of a topic when it is deleted, not when its deletion is requested."""
    lab = (
        opened(2, runs=None, config={"delete.topic.enable": True}).create_topic("a.b-c", [[1, 2]]).run(until="topic a.b-c exists")
    )
    assert "/brokers/topics/a.b-c" in lab.tables.znodes().index
    lab.run().delete_topic("a.b-c").run(until="topic a.b-c is gone")
    assert "/brokers/topics/a.b-c" not in lab.tables.znodes().index


HOLD = {"t-0 has a leader", "t-0 is fully in sync", "topic t exists", "broker 3 is unregistered", "there is a controller"}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_every_sentence_of_the_list_is_understood(opened: Callable[..., Lab], sentence: str) -> None:
    """What the error lists can be said as it stands; where it is false, the run says that it has not come to it."""
    lab = opened(2, runs=None, topics={"t": [[1, 2]]})
    assert [known for known, pattern in PATTERNS.items() if pattern.fullmatch(sentence)] == [sentence]
    if sentence in HOLD:
        assert lab.run(until=sentence) is lab
        return
    with pytest.raises(UserError) as problem:
        lab.run(until=sentence)
    assert refusal(problem) == f"The cluster is quiet before this condition is true: {sentence}."


@pytest.mark.parametrize("until", ["boo", "t-0 has leader", 5, [], "t-0 has a leader!", "broker x is controller", "\x1b[31m"])
def test_what_means_nothing_is_refused(opened: Callable[..., Lab], until: object) -> None:
    """One printable sentence lists what can be said, and nothing has happened."""
    lab = opened(1, runs=None)
    before = len(lab.records)
    with pytest.raises(UserError) as problem:
        lab.run(until=until)  # type: ignore[arg-type]
    said = refusal(problem)
    assert all(repr(sentence) in said for sentence in SENTENCES) and said.isprintable() and len(lab.records) == before


# ---------------------------------------------------------------- reassignments that come to nothing


def test_a_refused_reassignment_says_so(opened: Callable[..., Lab], capsys: pytest.CaptureFixture[str]) -> None:
    """The code of the controller's answer is printed once, with the partition. Source: KafkaController.validateReplicas (2.8)."""
    lab = opened(2, runs=None, topics={"t": [[1, 2]]})
    lab.reassign({"t-0": [1, 9]}).run()
    said = capsys.readouterr().out
    assert said.count("INVALID_REPLICA_ASSIGNMENT") == 1 and "the reassignment of t-0" in said
    lab.reassign({"t-0": None}).run()
    assert "NO_REASSIGNMENT_IN_PROGRESS" in capsys.readouterr().out
    lab.reassign({"t-0": [2, 1]}).run()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("release", "words"), [("0.8.1", "[9] are not alive"), ("1.0", "waits until each is in sync")])
def test_a_request_by_the_znode_says_what_comes_of_it(
    opened: Callable[..., Lab], capsys: pytest.CaptureFixture[str], release: str, words: str
) -> None:
    """Up to 0.10.0 the controller refuses brokers that are not alive, later it waits for them; either is printed once."""
    lab = opened(2, release=release, runs=None, topics={"t": [[1, 2]]}).reassign({"t-0": [1, 9]}).run()
    said = capsys.readouterr().out
    assert words in said and len(said.splitlines()) == 1
    assert ("/admin/reassign_partitions" in lab.tables.znodes().index) is (release == "1.0")
