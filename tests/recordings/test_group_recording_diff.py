"""Recordings of real group coordinators beside our own coordinator, which gets their requests at their times."""

from __future__ import annotations

import copy
from functools import cache

import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.journal.fold import fold
from kcontrol.journal.journal import to_json
from kcontrol.lab.groups.recording_diff import GroupRecordingDiff
from kcontrol.recordings.groups import compare, from_journal
from tests.group.golden import other
from tests.lab.support import refusal
from tests.recordings.test_groups import NAMES, recorded


@cache
def played(name: str) -> Lab:
    """Return our run of a recording's requests; a test must not act on it."""
    return Lab.play(name, runs=None)


@pytest.mark.parametrize("name", NAMES)
def test_our_coordinator_answers_as_the_real_one(name: str) -> None:
    """The requests of a recording get the recorded answers, by the same request or timer, and the log has equal records."""
    found = Lab.open(name).compare(played(name))
    assert isinstance(found, GroupRecordingDiff) and found.differences == []
    release, scenario = name.split("/", 1)
    count = len(recorded(name)["exchange"])
    assert str(found).startswith(f"No difference between Kafka {release}, {scenario} and our {scenario} in {count} entries, by")
    assert set(found.table["verdict"]) <= {"same", "free"} and len(found.table) == count + len(recorded(name)["log"])


@pytest.mark.parametrize("name", NAMES)
def test_every_answer_and_record_counts(name: str) -> None:
    """Another value in any field of any answer, another time of an answer, and a missing record are differences of that place."""
    ours, theirs = from_journal.of_journal(played(name).records), recorded(name)
    for at, step in enumerate(theirs["exchange"]):
        for key in step.get("answer", ()):
            if (step["api"], key) == ("JoinGroup", "member"):
                continue  # the names of members come from this field
            changed = copy.deepcopy(theirs)
            changed["exchange"][at]["answer"][key] = other(step["answer"][key])
            assert at + 1 in {d.step for d in compare.differences(changed, ours)}, (step["n"], key)
        if "answer" in step:
            changed = copy.deepcopy(theirs)
            changed["exchange"][at]["answered_at"] += 30_000
            found = [d for d in compare.differences(changed, ours) if d.step == at + 1]
            assert found or ours["exchange"][at]["released_by"] == step["n"]
    for at in range(len(theirs["log"])):
        changed = copy.deepcopy(theirs)
        del changed["log"][at]
        assert [d.kind for d in compare.differences(changed, ours)][-1] == "log"


def test_a_difference_names_entry_field_and_both_sides() -> None:
    """The sentence has the entry, the field and both values; the table marks this entry alone."""
    changed = recorded("0.9.0.1/group/leader-leaves")
    changed["exchange"][10]["answer"]["error"] = "NONE"
    found = Lab.play(changed, runs=None).compare(Lab.open("0.9.0.1/group/leader-leaves"))
    assert found.differences == []  # a scenario is its requests: the changed answer is no part of the run
    again = GroupRecordingDiff(
        ("theirs", "ours"), changed, from_journal.of_journal(played("0.9.0.1/group/leader-leaves").records)
    )
    assert str(again) == (
        "The first difference is in step 11 (B sends Heartbeat), in answers, Heartbeat: error. theirs: NONE; "
        "ours: REBALANCE_IN_PROGRESS."
    )
    table = again.table
    assert list(table[table["verdict"] == "differs"]["entry"]) == [11]
    assert again._repr_html_().count("<mark>") == 2


def test_two_releases_of_one_scenario() -> None:
    """0.9.0.1 and 2.8.2 differ in the first request: 2.8.2's JoinGroup has another version and a rebalance timeout."""
    one, other = (Lab.open(f"{release}/group/leader-leaves") for release in ("0.9.0.1", "2.8.2"))
    found = one.compare(other)
    assert found.difference is not None and (found.difference.step, found.difference.kind) == (1, "exchange")
    assert set(found.table["verdict"]) == {"not compared"}
    assert found.names == ("Kafka 0.9.0.1, group/leader-leaves", "Kafka 2.8.2, group/leader-leaves")


def test_the_run_is_a_lab() -> None:
    """Our run of a recording folds, forks, and goes on; without the LeaveGroup of the leader the group keeps both members."""
    lab = Lab.play("0.9.0.1/group/leader-leaves", runs=None)
    assert to_json(lab.state) == to_json(fold(lab.records)) == to_json(lab.branch().state)
    leaves = next(
        r for r in lab.records if r.kind == "act" and r.fields["action"][:3] == ["coordinator_request", "A", "LeaveGroup"]
    )
    found = lab.without(leaves.id)
    assert found.at > 0 and "LeaveGroup" in found.names[1]
    assert lab.run().tables.members().empty


def test_another_release_plays_the_requests() -> None:
    """The requests that 0.9.0.1 got, sent to 2.8: the first wait of an Empty group lasts 3 s, longer than the recording."""
    found = Lab.open("0.9.0.1/group/leader-leaves").compare(Lab.play("0.9.0.1/group/leader-leaves", "2.8", runs=None))
    assert found.difference is not None
    assert (found.difference.step, found.difference.about, found.difference.ours) == (1, "JoinGroup: the answer", None)


def test_a_run_without_the_requests_is_refused() -> None:
    """A lab that plays no recording cannot be compared with a recording of a group; a dict that is none cannot be played."""
    with Lab(brokers=1, runs=None) as lab:
        with pytest.raises(UserError) as problem:
            Lab.open("0.9.0.1/group/leader-leaves").compare(lab)
        assert "Lab.play(recording)" in refusal(problem)
    with pytest.raises(UserError) as problem:
        Lab.play({"exchange": [], "format_version": 1}, runs=None)
    assert "is not a recording of a group" in refusal(problem)


def test_unknown_names_list_what_there_is() -> None:
    """An unknown scenario lists those of the release; an unknown release lists the releases."""
    for use in (Lab.open, Lab.play):
        with pytest.raises(UserError) as problem:
            use("0.9.0.1/group/x")
        assert "group/leader-leaves" in refusal(problem)
        with pytest.raises(UserError) as problem:
            use("2.4.1/group/leader-leaves")
        assert "0.9.0.1" in refusal(problem)
