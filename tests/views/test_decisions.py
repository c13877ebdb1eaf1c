"""What a record decides: the words of the headline, and the values that comparisons use."""

from __future__ import annotations

import pytest

from kcontrol import Lab
from kcontrol.journal.fold import fold
from kcontrol.journal.journal import OUTSIDE, Record, RecordId
from kcontrol.views import explanations, text
from kcontrol.views.decisions import NO_LEADER, about_partitions, decision
from kcontrol.views.explanations import rule
from kcontrol.views.viewer import Viewer
from tests.recordings.support import in_project


def decided(lab: Lab) -> list[Record]:
    """Return the records of a run that decide something."""
    return [record for record in lab.records if decision(record)]


def test_a_replica_outside_the_isr_decides_nothing() -> None:
    """After the death of a leader the last decision is its succession: the later move of its replica writes nothing."""
    lab = Lab(brokers=[4, 1, 2, 3], topics={"t": [[1, 2, 3]]}, runs=None).kill(1).run()
    moves = [r.to_json() for r in lab.records if r.kind == "change"]
    assert moves[-1].fields["rule"] == "not in the ISR"
    last = decided(lab)[-1]
    assert decision(last) == "t-0: broker 2 leads, leader epoch 1, ISR [2, 3]"
    assert rule(last.to_json()) == "the leader is dead: a live replica of the ISR becomes leader"


def test_the_rule_of_the_last_decision_of_a_move_speaks_of_no_death() -> None:
    """Below the headline of a complete reassignment, all brokers alive, stands that the removed replica leaves the ISR."""
    lab = Lab(brokers=[9, 1, 2, 3], topics={"t": [[1, 2]]}, runs=None).reassign({"t-0": [2, 3]}).run()
    last = decided(lab)[-1].to_json()
    assert decision(last) == "t-0: broker 2 leads, leader epoch 3, ISR [2, 3]"
    assert rule(last) == "a replica that goes Offline leaves the ISR"


@pytest.mark.parametrize(("release", "scenario"), [("0.8.1.1", "isr-order"), ("2.8.2", "reassign-reorder")])
def test_the_headline_of_a_recording_is_its_last_decision(release: str, scenario: str) -> None:
    """At its end the viewer of a recording names leader, epoch and ISR as the state znode has them."""
    lab = Lab.open(in_project(release, scenario))
    state, (partition,) = fold(lab.records), lab.partitions().index
    row = lab.partitions().loc[partition]
    said = Viewer(records=lab.records).headline()
    assert state["znodes"] and said.startswith(
        f"{partition}: broker {row.leader} leads, leader epoch {row.leader_epoch}, ISR {row.isr}"
    )


def test_a_refused_election_is_one_decision_for_headline_and_comparison() -> None:
    """An election without a live replica of the ISR has the outcome NO_LEADER and the reason in its words."""
    lab = Lab(brokers=3, topics={"t": [[2, 3]]}, runs=None).kill(3).run().kill(2).run()
    refused = [record for record in lab.records if record.kind == "failed_change"][-1]
    (found,) = about_partitions(refused)
    assert (found.partition, found.outcome) == ("t-0", NO_LEADER)
    assert decision(refused) == found.words == "t-0 stays Offline: no leader can be elected by strategy offline"


@pytest.mark.parametrize("text", ["", "[]", '{"leader":1}', '{"leader":"x","isr":[1]}', '{"leader":1,"isr":5}'])
def test_a_state_znode_of_a_client_that_is_no_state_decides_nothing(text: str) -> None:
    """Data without a leader and a list of brokers are no decision, and no error."""
    ops = [["set", "/brokers/topics/t/partitions/0/state", text]]
    record = Record(RecordId(OUTSIDE, 0, 1), "write", None, 0, {"ops": ops, "error": None, "zxid": 1, "seen": None})
    assert decision(record) == ""


def test_the_headline_of_a_run_with_a_group_is_the_last_state_of_the_group() -> None:
    """At rest the headline has the state that a group reached after the last election, its generation, and the reason."""
    lab = Lab.play("leader dies")
    last = decided(lab)[-1].to_json()
    assert Viewer(records=lab.records).headline() == decision(last) == "group billing: Stable, generation 3"
    assert rule(last) == "the assignment is stored"


def test_a_dead_group_has_no_generation() -> None:
    """The last decision of a recording whose last member leaves is the state Dead of its group, without a generation."""
    lab = Lab.open("0.9.0.1/group/leader-leaves")
    assert decision(decided(lab)[-1]) == "group grp-3: Dead"


def test_the_rule_of_a_group_is_said_once() -> None:
    """A node of the causes of a generation has the rule of the transition in its sentence, and in no other line."""
    moved = [record for record in Lab.play("billing").records if record.kind == "group"][-1].to_json()
    assert text.sentence(moved).endswith(f": {rule(moved)}.")
    assert explanations.decided(moved, "2.8") == ["transitionTo in GroupMetadata.scala (2.8)"]
