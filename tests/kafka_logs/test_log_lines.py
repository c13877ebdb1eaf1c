"""The table of Kafka's log lines: each template reads what it writes, with all of its options and facts."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache

import pytest

from kcontrol.kafka_logs.log_lines import REASON, STATE, TABLE, Row, read, rows, text, written
from kcontrol.kafka_logs.templates import FACTS, LISTS, TYPES, Choice, Fact, Template, facts_of, numbers, parsed
from kcontrol.pipeline.logs.patterns import FACT, NAME, TYPE, forms

READ = [row for row in rows() if row.releases]
WRITTEN = [row for row in rows() if row.level != parsed("«»")]
TEXTS = {
    "text": ("billing", "a b"), "rest": ("no reason",), "word": ("OnlinePartition", "JoinGroup"), "token": ("anna-7f", "m.1"),
    "topic": ("orders", "eu.west_1-x"), "old_topic": ("orders", "eu.west_1-x"), "blanks": ("", " "), "int": ("0", "7", "412"),
    "decimal": ("0.25",), "bool": ("true", "false"), "option": ("None", "Some(b)"), "bare": ("b",), "short": ("Online",),
    "ints": ("1", "1,2", ""), "seq": ("1", "1, 2", ""), "numbers": ("Set(1, 2)",),
    "some_ints": ("1", "1,2"), "some_partitions": ("orders-0,orders-1", "[orders,0]"), "topics": ("orders", "a,b"),
    "ids": ("BrokerState(brokerId=1, brokerEpoch=-1)",), "names": ("orders", "a, b"), "words": ("(m1,m2)",),
    "partitions": ("orders-0,orders-1", "[orders,0]"), "listed": ("[Topic=orders,Partition=0,Replica=1]", "Set(orders-0)"),
    "assignment": ("orders-0 -> List(1, 2)",), "states": ("orders-0 -> OnlinePartition",), "epochs": ("1 -> 25",),
    "replicas": ("ReplicaAssignment(replicas=1,2, addingReplicas=, removingReplicas=)",), "response_facts": ("",),
    "state": ("(Leader:1,ISR:1,2,LeaderEpoch:0,ControllerEpoch:1)",),
    "whole_state": ("LeaderAndIsr(leader=1)",), "why_ignored": ("as the local state is newer",),
}  # fmt: skip
"""Values of each type, as a line has them."""


def lines(template: Template, chance: random.Random, known: dict[str, str]) -> str:
    """Return a line of a template with options and values by chance; `known` gets the facts at their first places."""
    found = ""
    for part in template:
        if isinstance(part, str):
            found += part
        elif isinstance(part, Choice):
            found += lines(chance.choice(part.options)[1], chance, known)
        else:
            value = known.get(part.name, chance.choice(part.texts or TEXTS[part.type]))
            known |= {part.name: value} if part.name and (value or TYPES[part.type].json in LISTS) else {}
            found += value
    return found


@cache
def compiled() -> list[tuple[str, str, re.Pattern[str], str]]:
    return [(form.kind, form.words, re.compile(form.pattern), form.replacement) for form in forms()]


def understood(message: str, kinds: set[str] | None = None) -> tuple[str, dict[str, str]]:
    """Return the kind of the first form that matches, and the facts as the message has them."""
    for kind, words, pattern, replacement in compiled():
        if (kinds is None) != (kind == STATE) and words in message and (found := pattern.match(message)):
            filled = re.sub(r"\$(\d+)", lambda group: found[int(group[1])] or "", replacement)
            return kind, dict(_facts(filled))
    return "nothing", {}


def _facts(filled: str) -> Iterator[tuple[str, str]]:
    for fact in filled.split(FACT)[1:]:
        name, _, value = fact.partition(NAME)
        kind, _, value = value.rpartition(TYPE)
        if value:
            # The group of a list takes the character before it too.
            yield name, value[1:] if kind in LISTS else value


@pytest.mark.parametrize("row", READ, ids=[f"{n} {row.kind}" for n, row in enumerate(READ)])
def test_each_template_reads_its_own_lines(row: Row) -> None:
    """A line with any options and values gives the kind and the facts of its row."""
    chance = random.Random(row.kind)
    for _ in range(60):
        known: dict[str, str] = {}
        line = lines(row.template, chance, known)
        if row.kind == REASON:
            assert read(REASON, line), line
            continue
        kind, facts = understood(line, {STATE} if row.kind == STATE else None)
        assert (kind, facts) == (row.kind, known), line


RELEASES = ("0.8.0", "0.8.2", "0.9", "0.10.2", "0.11.0", "1.0", "1.1", "2.1", "2.4", "2.5", "2.6", "2.8", "3.0", "3.2", "3.9")
LISTED: dict[str, list[object]] = {name: [1, 2] for name in ("ints", "some_ints", "seq", "ids")}
LISTED |= {name: ["a", "b"] for name in ("names", "topics")}


def values(template: Template) -> dict[str, object]:
    """Return a value of each fact of a template, as the journal has it."""
    found: dict[str, object] = {}
    for part in template:
        if isinstance(part, Choice):
            found = {name: value for _, option in part.options for name, value in values(option).items()} | found
        elif isinstance(part, Fact) and part.name:
            found[part.name] = LISTED.get(part.type) or (part.texts or TEXTS[part.type])[0]
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_release_writes_is_read_as_its_kind(release: str) -> None:
    """Each line that a release can write gives its kind, and the numbers and names that it was filled with."""
    at = numbers(release)
    printed = [row for row in WRITTEN if row.releases and row.prints(at)]
    for row in printed:
        facts = values(row.template)
        line = written(row.kind + (f".{row.case}" if row.case else ""), release, facts)
        if line is not None:
            kind, found = understood(line.message)
            assert kind == row.kind, line
            plain = {name for name in found if FACTS.get(name, name) in ("int", "token", "topic", "group")}
            assert plain and {name: found[name] for name in plain} == {name: facts[name] for name in plain}, line
            assert line.file in ("controller.log", "server.log", "state-change.log") and line.logger
    assert len(printed) >= 20


@pytest.mark.parametrize(("release", "is_written"), [("0.8.0", True), ("1.0.2", True), ("1.1", False), ("3.9", False)])
def test_a_line_ends_with_its_last_release(release: str, is_written: bool) -> None:
    """Its patches have the line too."""
    line = written("unclean_election", release, {"topic": "t", "partition": 0, "leader": 1, "live": [1]})
    assert (line is not None) == is_written


def test_a_line_that_is_only_written_is_read_as_another_kind() -> None:
    """Up to 0.11.0.0 a coordinator writes of a member that leaves what it writes of one that fails."""
    assert [row.kind for row in rows() if not row.releases] == ["member_left"]
    line = written("member_left", "0.9", {"broker": 1, "member": "m", "group": "g"})
    assert line is not None and line.level == "TRACE" and understood(line.message)[0] == "member_failed"


def test_a_line_that_is_cut_is_of_no_kind() -> None:
    """The last line of a full disk ends within its state."""
    line = (
        "[Controller id=1 epoch=2] Changed partition t-0 from NewPartition to OnlinePartition with state LeaderAndIsr(leader=1)"
    )
    assert understood(line)[0] == "partition_transition" and understood(line[:-1])[0] == "nothing"


def test_a_request_for_no_partition_is_no_request() -> None:
    """Kafka logs StopReplica to a broker without replicas too, and sends nothing."""
    line = "The stop replica request (delete = true) sent to broker 2 is "
    assert understood(line)[0] == "nothing" and understood(line + "[orders,0]")[0] == "stop_replica_planned"


def test_the_table_is_in_order() -> None:
    """Rows have six columns; a line that is written has a level, a logger and a file; a fact has one conversion in a row."""
    assert {len(line.split("\t")) for line in TABLE.read_text(encoding="utf-8").splitlines()} == {6}
    for row in rows():
        assert row.file or row.kind in (STATE, REASON)
        assert (row.level == parsed("«»")) == (not row.logger), row.kind
        assert set(facts_of(row.template).values()) <= {kind.json for kind in TYPES.values()}
        assert conversions(row.template) == {(name, kind) for name, kind in facts_of(row.template).items()}, row.kind
    assert set(FACTS.values()) <= TYPES.keys() == TEXTS.keys()


def conversions(template: Template) -> set[tuple[str, str]]:
    found = set(facts_of(tuple(part for part in template if isinstance(part, Fact))).items())
    for part in template:
        if isinstance(part, Choice):
            found |= {pair for _, option in part.options for pair in conversions(option)}
    return found


def test_reasons_and_states_are_texts_of_a_release() -> None:
    """The text inside a line follows the release too."""
    new = {"member": "m", "instance": None, "client_reason": "x"}
    assert [text("reason.new", release, new) for release in ("2.0", "2.1", "2.3", "3.2")] == [
        None, "Adding new member m", "Adding new member m with group instanceid None",
        "Adding new member m with group instance id None; client reason: x",
    ]  # fmt: skip
    assert read(REASON, "Removing member m on LeaveGroup") == ("left", {"member": "m"})
    assert read(REASON, "because it rains") is None
