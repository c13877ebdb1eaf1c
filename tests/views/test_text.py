"""Every record, every action and every state can be said in words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kcontrol
from kcontrol import Lab
from kcontrol.cluster.actions import ACTIONS
from kcontrol.journal.fold import fold
from kcontrol.journal.journal import OUTSIDE, Record, RecordId
from kcontrol.journal.journal_file import read, write
from kcontrol.journal.record_fields import FIELDS
from kcontrol.views import text
from kcontrol.views.explanations import MEANINGS
from kcontrol.views.still_picture import svg
from tests.core.logs import lost_by_unclean_election
from tests.views.support import NASTY, cluster, group_story, random_run, story

PACKAGE = Path(kcontrol.__file__).parent
WRITERS = ("broker", "cluster", "controller", "core", "driver", "group", "recordings", "zookeeper")
LOGGED = re.compile(r'\.log\(\s*"(\w+)"|\bRecordParts\(\s*"(\w+)"')


def kinds_in_source() -> set[str]:
    """The kinds in the table of fields that some module names which decides, acts or records; views and the fold only read."""
    named = "".join(path.read_text(encoding="utf-8") for room in WRITERS for path in (PACKAGE / room).rglob("*.py"))
    return {kind for kind in FIELDS if f'"{kind}"' in named}


def test_every_kind_of_record_has_a_sentence() -> None:
    """Whatever the package records, `say` has words for, and for nothing else."""
    logged = (match for path in PACKAGE.rglob("*.py") for match in LOGGED.finditer(path.read_text(encoding="utf-8")))
    assert {match[1] or match[2] for match in logged} <= kinds_in_source()
    assert set(text.SENTENCES) == set(FIELDS) == kinds_in_source()


@pytest.mark.parametrize("seed", range(4))
def test_sentences_of_random_runs(seed: int) -> None:
    """Every record of a run full of faults is one line that begins with a capital and ends with a full stop."""
    for line in map(text.sentence, random_run(seed).journal.records):
        assert re.fullmatch(r"[A-Z].*[.…]", line), line
        assert line.isprintable()


def test_a_record_is_said_alike_before_and_after_it_was_a_file(tmp_path: Path) -> None:
    """A sentence and a weight do not depend on whether the fields are values of the package or plain JSON."""
    for world in (random_run(11), group_story("2.8")):
        records = world.journal.records
        write(records, tmp_path / "journal")
        again = read(tmp_path / "journal")
        assert text.lines(again) == text.lines(records)
        assert list(map(text.importance, again)) == list(map(text.importance, records))


def test_the_story_in_words() -> None:
    """The sentences that matter say who did what to what, and with which outcome."""
    said = [text.sentence(record) for record in story()]
    for sentence in (
        "Broker 2 is killed; ZooKeeper does not know yet.",
        "ZooKeeper ends the session of broker 2: /brokers/ids/2 is deleted.",
        "ZooKeeper notifies broker 3: /brokers/ids has other children.",
        "Broker 3 begins to handle BrokerChange.",
        "A client acts: create topic orders.",
    ):
        assert sentence in said
    moves = [
        sentence
        for sentence in said
        if re.search(r"^Broker \d moves orders-\d from Offline to Online: leader \d, ISR \[", sentence)
    ]
    assert moves


def test_a_loss_in_words() -> None:
    """The sentences about record 7 say that it is appended, acknowledged, truncated and lost."""
    records = lost_by_unclean_election().journal.records
    said = [text.sentence(record) for record in records]
    for sentence in (
        "A client acts: produce 7 to t-0 at broker 1, acks=1.",
        "Broker 1 appends '7' at offset 7 to t-0.",
        "Broker 1 acknowledges '7', record 7 of t-0 (acks=1).",
        "Broker 1 takes '7' at offset 7 out of its log of t-0.",
        "Record 7 of t-0, '7', is on no replica any more: broker 1 had acknowledged it with acks=1.",
    ):
        assert sentence in said
    assert all(re.fullmatch(r"[A-Z].*[.…]", line) for line in said)
    assert [text.importance(record) for record in records if record.kind == "record_lost"] == [2]


@pytest.mark.parametrize(
    ("body", "said"), [(None, "sends no response to the request 2.1-9-Ask"), ({"error": "X"}, "responds: X")]
)
def test_a_dropped_request_has_no_response(body: dict[str, str] | None, said: str) -> None:
    """The sentence about a request that a controller has dropped says that no response is sent."""
    # Source: ControllerEventManager.clearAndPut (1.1), which drops the events of the queue.
    record = Record(RecordId(1, 1, 3), "respond", None, 0, {"correlation_id": "2.1-9-Ask", "body": body})
    assert text.sentence(record) == f"Broker 1 {said}."


def test_a_group_in_words() -> None:
    """The sentences of a coordinator's writes name the group, and the assignment, the offsets or the number of tombstones."""
    said = {release: [text.sentence(record) for record in group_story(release).journal.records] for release in ("0.9", "2.8")}
    for sentence in (
        "Broker 1 appends the assignment of group billing in generation 2 to __consumer_offsets-0.",
        "Broker 1 appends the offsets orders-0 7 of group billing to __consumer_offsets-0.",
    ):
        assert sentence in said["0.9"] and sentence in said["2.8"]
    for release, state in (("0.9", "AwaitingSync"), ("2.8", "CompletingRebalance")):
        assert f"Broker 1 moves group billing from {state} to Stable: the assignment is stored." in said[release]
    assert "Broker 2 appends 1 tombstone to __consumer_offsets-0." in said["0.9"]
    assert "Broker 2 appends 1 record of a group without members to __consumer_offsets-0." in said["2.8"]
    assert all(re.fullmatch(r"[A-Z].*[.…]", line) for lines in said.values() for line in lines)


def test_a_recording_of_a_group_in_words() -> None:
    """A client without a name is an admin client, and a closed consumer is in no generation."""
    said = [text.sentence(record) for record in Lab.open("0.9.0.1/group/leader-leaves").records]
    assert "Step 16 of the scenario: an admin client sends DescribeGroups." in said
    assert "Consumer B is in no generation of group grp-3; its process is closed." in said


@pytest.mark.parametrize(
    ("names", "shown"),
    [((), ""), (("a",), "a"), (("a", "b"), "a and b"), ("abcd", "a, b, c and d"), ("abcde", "a, b, c and 2 more")],
)
def test_lists(names: tuple[str, ...], shown: str) -> None:
    """A long list is cut and counted."""
    assert text.listed(names) == shown


def test_what_cannot_be_printed() -> None:
    """A topic's name cannot break a line, steer a terminal or fill a page."""
    record = Record(RecordId(OUTSIDE, 0, 1), "act", None, 0, {"action": ["create_topic", "a\x1b[2J\nb" + "c" * 500]})
    said = text.sentence(record)
    assert said.isprintable()
    assert len(said) <= text.LONGEST


def test_every_action_has_a_label() -> None:
    """Labels and kinds of actions are the same list."""
    assert set(MEANINGS["actions"]) == set(ACTIONS)


@pytest.mark.parametrize("seed", range(4))
def test_labels_say_what_an_action_is_about(seed: int) -> None:
    """Two different things that can happen next never have the same label, and no placeholder is left open."""
    world = random_run(seed, 120)
    labels = [text.action_label(action, fold(world.journal.records)) for action in world.actions()]
    assert len(set(labels)) == len(labels)
    assert not any("{" in label for label in labels)


def test_a_label_names_the_event() -> None:
    """The label of a notification names the path, and the labels of `begin` and `advance` name the event."""
    world = cluster((1, 2))
    world.step(("delete", "/controller"))
    state = fold(world.journal.records)
    assert text.action_label(("deliver_notification", 1), state) == "broker 1 receives a notification: /controller"
    world.step(("deliver_notification", 1))
    assert text.action_label(("begin", 1, "controller"), fold(world.journal.records)) == "broker 1 begins: Reelect"
    world.step(("begin", 1, "controller"))
    assert text.action_label(("advance", 1, "controller"), fold(world.journal.records)) == "broker 1 continues: Reelect"


def test_summaries() -> None:
    """One line says who is there, who rules under which epoch, and how many partitions have a leader that lives."""
    assert text.summary(fold(story()), (1, 2, 3)) == "3 brokers, broker 1 is controller (epoch 2), 3 partitions online"
    world = cluster()
    world.step(("kill", 1))
    said = text.summary(fold(world.journal.records), (1, 2, 3))
    assert said == "2 of 3 brokers, broker 1 is controller (epoch 1), 2 partitions online, 1 offline"
    world.step(("expire_session", 1))
    assert text.summary(fold(world.journal.records), (1, 2, 3)).startswith("2 of 3 brokers, no controller, ")
    assert text.summary(fold([])) == "0 brokers, no controller, no partitions"


def test_a_summary_counts_in_english() -> None:
    """One partition is a partition and two are partitions, whatever is said of the others."""
    world, ends = cluster(), ["3 partitions online", "2 partitions online, 1 offline", "1 partition online, 2 offline"]
    for broker, said in zip((0, 1, 2), ends, strict=True):
        if broker:
            world.step(("kill", broker))
        assert text.summary(fold(world.journal.records)).endswith(f", {said}")


def test_what_is_to_be_deleted_is_neither_online_nor_offline() -> None:
    """After a request for the deletion of a topic a summary and a picture count its partitions apart."""
    world = cluster()
    before = text.summary(fold(world.journal.records))
    world.step(("delete_topic", "orders"))
    state = fold(world.journal.records)
    assert before.endswith("3 partitions online") and text.summary(state).endswith("3 partitions being deleted")
    assert "being deleted" in svg(state)
    world.run()
    assert text.summary(fold(world.journal.records)).endswith("no partitions")


def test_znodes_with_nonsense() -> None:
    """Nonsense in the znodes that a summary reads is no error."""
    world = cluster(topic=NASTY)
    for path in ("/controller", "/controller_epoch", f"/brokers/topics/{NASTY}", f"/brokers/topics/{NASTY}/partitions/0/state"):
        for nonsense in ("nonsense", "", "[]", "null", '{"partitions":7}', '{"brokerid":"x"}'):
            world.step(("set", path, nonsense))
            assert text.summary(fold(world.journal.records))
