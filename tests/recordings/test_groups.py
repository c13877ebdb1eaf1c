"""Recordings of real group coordinators as journals: the recording is in the journal, and the memory between is inferred."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.journal.journal import Record
from kcontrol.recordings.groups import recording as group_recording
from kcontrol.recordings.groups.from_journal import of_journal
from kcontrol.recordings.groups.to_journal import to_journal
from tests.lab.support import refusal
from tests.parts import ROOT, SHARED

FOLDER = ROOT / "notebooks" / "recordings"
SHIPPED = sorted(FOLDER.glob("*/group/*.json"))
NAMES = [path.relative_to(FOLDER).with_suffix("").as_posix() for path in SHIPPED]


def recorded(name: str) -> dict[str, Any]:
    """Return the recording of a name such as "0.9.0.1/group/leader-leaves"."""
    return group_recording.parse((FOLDER / f"{name}.json").read_bytes(), name)


def plain(step: dict[str, Any]) -> dict[str, Any]:
    """Return an entry with the defaults of its answer's fields, and without what the journal says of its release."""
    kept = {name: value for name, value in step.items() if name not in ("released_by", "timers")}
    if "answer" in kept:
        kept["answer"] = msgspec.to_builtins(msgspec.convert(kept["answer"], group_recording.ANSWERS[kept["api"]]))
    return kept


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_in_its_journal_as_a_whole(name: str) -> None:
    """Each request, time, answer and record of the log comes out of the journal as it is in the recording."""
    theirs, again = recorded(name), of_journal(Lab.open(name).records)
    assert [plain(step) for step in again["exchange"]] == [plain(step) for step in theirs["exchange"]]
    assert [entry["key"] for entry in again["log"]] == [entry["key"] for entry in theirs["log"]]
    assert [entry["value"] for entry in again["log"]] == [entry["value"] for entry in theirs["log"]]
    assert (again["release"], again["name"]) == (theirs["release"], theirs["name"])
    assert len(theirs["exchange"]) >= 8


# Kinds of records that a recording has. Only the time of an appended record is inferred; the first start is inferred too.
RECORDED = {"run", "scenario", "consumer", "enqueue", "respond", "stop", "start"}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_inferred_is_marked(name: str) -> None:
    """Each record without a place in the recording has the field `inferred`, and its sentence says so."""
    run = Lab.open(name)
    sentences = dict(run.journal()["what"])
    for record in run.records:
        mark = record.fields.get("inferred")
        if record.kind in ("append", "offsets_append"):
            assert mark == "time" and sentences[str(record.id)].endswith(" (its time is inferred).")
        elif mark is None:
            assert record.kind in RECORDED and "inferred" not in sentences[str(record.id)]
        else:
            timer = record.kind in ("enqueue", "start")
            assert mark == "record" and sentences[str(record.id)].endswith(" (inferred).")
            assert record.kind not in RECORDED or (timer and record.at_ms >= 0)


@pytest.mark.parametrize("name", NAMES)
def test_every_answer_is_explained(name: str) -> None:
    """The inferred memory agrees with each answer: no record had to be made for a reason that the recording does not have."""
    records = Lab.open(name).records
    assert not [r.id for r in records if r.fields.get("rule") == "the recording does not say why"]
    assert not [r.id for r in records if r.kind == "append" and r.cause is None]


def rebalances(name: str) -> list[tuple[Any, ...]]:
    found = Lab.open(name).tables.rebalances()
    return list(zip(found["reason"], found["to_generation"], found["members"].map(tuple), found["ended_in"], strict=True))


def test_the_rounds_of_a_group_whose_leader_leaves() -> None:
    """0.9.0.1: three rounds with the members of the leaders' answers, then the group is Dead, as DescribeGroups says."""
    assert rebalances("0.9.0.1/group/leader-leaves") == [
        ("a new member", 1, ("a",), "Stable"), ("a new member", 2, ("a", "b"), "Stable"),
        ("a member leaves", 3, ("b",), "Stable"), ("a member leaves", 3, (), "Dead"),
    ]  # fmt: skip
    assert rebalances("2.8.2/group/leader-leaves")[-1] == ("a member leaves", 3, (), "Empty")


def test_a_session_that_expires() -> None:
    """The silent member is removed one session after its last answered request, and the rebalance begins there."""
    found = Lab.open("0.9.0.1/group/follower-session-expires").tables.rebalances().iloc[-1]
    assert (found["reason"], found["begin_ms"], found["members"]) == ("session timeout", 620 + 1_500, ["a"])


def test_an_offset_that_expires() -> None:
    """The tombstone of an offset is appended at the first check after its time to expire: 1,242 ms, checks every 400 ms."""
    run = Lab.open("0.9.0.1/group/commit-fetch-expire")
    (tombstone,) = [r for r in run.records if r.kind == "append" and r.fields["completion_event"] is None]
    assert tombstone.at_ms == 1_600
    assert list(run.tables.offsets()["partition"]) == ["orders-0", "orders-1"]


def test_a_coordinator_that_restarts() -> None:
    """After its start the coordinator has what its log has; 2.8.2's static members keep their ids and partitions."""
    run = Lab.open("2.8.2/group/coordinator-restart")
    started = next(at for at, r in enumerate(run.records) if r.kind == "start" and r.fields["incarnation"] == 2)
    before, after = run.rewind(started), run.rewind(started + 6)
    assert before.tables.members().empty
    assert list(after.tables.members()["member_id"]) == ["M1", "M2"] and set(after.tables.members()["state"]) == {"Stable"}
    assert list(after.tables.offsets()["offset"]) == [7]


def test_the_strip_of_a_recording_names_members_states_and_partitions() -> None:
    """The text of the strip names each member with its partitions, and the state under the release's name."""
    lines = Lab.open("0.9.0.1/group/third-member-joins").group_strip().lines()
    assert lines[0] == "Group grp-2: Stable, generation 3, coordinator broker 1."
    assert [line.split(";")[:2] for line in lines[1:4]] == [
        ["  A a: in generation 3", " orders-0, orders-1"],
        ["  B b: in generation 3", " orders-2"],
        ["  C c: in generation 3", " orders-3"],
    ]


# ---------------------------------------------------------------- recordings of others, and damaged ones


def changed(path: Path, name: str, change: Callable[[dict[str, Any]], Any]) -> Path:
    found = copy.deepcopy(recorded(name))
    change(found)
    path.write_text(json.dumps(found))
    return path


DAMAGES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "an unknown request": (lambda r: r["exchange"][1].update(api="Dance"), "entry 2 of the exchange: Invalid enum value 'Dance'"),
    "a field that is missing": (lambda r: r["exchange"][1]["request"].pop("gen"), "entry 2 of the exchange: Object missing"),
    "a field too many": (lambda r: r["exchange"][1]["request"].update(x=1), "entry 2 of the exchange: Object contains unknown"),
    "no hexadecimal text": (lambda r: r["exchange"][0]["request"].update(protocols=[["range", "0"]]), "entry 1 of the exchange"),
    "an unknown error": (lambda r: r["exchange"][3]["answer"].update(error="HUNGRY"), "entry 4 of the exchange"),
    "an answer before its request": (lambda r: r["exchange"][3].update(answered_at=1), "entry 4 of the exchange: its time"),
    "an answer without a time": (lambda r: r["exchange"][3].pop("answered_at"), "entry 4 of the exchange"),
    "a number out of order": (lambda r: r["exchange"][3].update(n=9), "entry 4 of the exchange: its number is 9"),
    "another version": (lambda r: r.update(format_version=2), "format_version"),
    "no release": (lambda r: r.update(release="x"), "'x' is not a release"),
    "a record without a field": (lambda r: r["log"][0]["value"].pop("leader"), "record 1 of the log has no field 'leader'"),
    "a record of no version": (lambda r: r["log"][0]["value"].update(version=9), "record 1 of the log: there is no version 9"),
    "a number that is too large": (lambda r: r["log"][0]["value"].update(generation=2**40), "record 1 of the log"),
    "no list": (lambda r: r.update(exchange={}), "is not a recording of a group"),
    "settings that are no numbers": (lambda r: r.update(broker={"x": "y"}), "is not a recording of a group"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_recording_is_one_sentence(damage: str, tmp_path: Path) -> None:
    """A recording that is damaged is refused in one sentence that names the place."""
    change, says = DAMAGES[damage]
    path = changed(tmp_path / "r.json", "0.9.0.1/group/leader-leaves", change)
    with pytest.raises(UserError) as problem:
        Lab.open(path)
    assert says in refusal(problem)


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_counts_more_than_what_kafka_would_do(name: str, tmp_path: Path) -> None:
    """A recording in which any answer has another error opens all the same, and the journal has the answer of the recording."""
    original = recorded(name)
    for at, step in enumerate(original["exchange"]):
        for error in ("NONE", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION"):
            if "answer" not in step or "error" not in step["answer"]:
                continue
            other = copy.deepcopy(original)
            other["exchange"][at]["answer"]["error"] = error
            records = to_journal(other)
            assert plain(of_journal(records)["exchange"][at]) == plain(other["exchange"][at])


def test_requests_without_an_answer(tmp_path: Path) -> None:
    """A request that the recorder never saw answered stays parked."""

    def cut(r: dict[str, Any]) -> None:
        del r["exchange"][3:], r["log"][1:], r["exchange"][2]["answer"], r["exchange"][2]["answered_at"]

    run = Lab.open(changed(tmp_path / "r.json", "0.9.0.1/group/leader-leaves", cut))
    assert list(run.tables.parked()["request"]) == ["JoinGroup"]
    assert set(run.tables.members()["state"]) == {"PreparingRebalance"}


@pytest.mark.shared
def test_every_recording_beside_the_project_opens() -> None:
    """Each recording of a group that the folder beside the project has becomes a journal that has the whole of it."""
    found = sorted((SHARED / "golden" / "group").glob("*.json"))
    assert found
    for path in found:
        theirs = group_recording.parse(path.read_bytes(), str(path))
        records: list[Record] = list(Lab.open(path).records)
        assert [plain(step) for step in of_journal(records)["exchange"]] == [plain(step) for step in theirs["exchange"]]
