"""Letting time go on, going back in it, and branching."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.journal.fold import fold
from kcontrol.lab.comparison.divergence import comparable_record
from tests.lab.support import refusal


def test_a_new_lab_is_at_rest(opened: Callable[..., Lab]) -> None:
    """Brokers start in the order in which they are named, each comes to rest, and the first one rules."""
    lab = opened([3, 1, 2])
    assert [record.fields["broker"] for record in lab.records if record.kind == "start"] == [3, 1, 2]
    assert lab.brokers().controller.to_dict() == {1: False, 2: False, 3: True}
    with pytest.raises(UserError) as problem:
        lab.step()
    assert "quiet" in refusal(problem)


def test_a_lab_that_is_not_started(opened: Callable[..., Lab]) -> None:
    """With start=False no broker runs, and there are no znodes."""
    lab = opened(start=False)
    assert lab.tables.znodes().empty and not lab.brokers().alive.any()


def test_an_act_lets_no_time_go_on(lab: Lab) -> None:
    """A kill is one step: ZooKeeper still names the dead controller."""
    lab.kill(1)
    assert lab.tables.znodes().owner["/controller"] == 1
    assert [record.kind for record in lab.records[-1:]] == ["stop"]


def test_step_does_what_is_first_among_the_actions(lab: Lab) -> None:
    """Without an action a step does what goes on by itself first; stepping to rest equals running."""
    twin = lab.branch("stepped")
    lab.kill(1).run()
    twin.kill(1)
    for _ in range(len(lab._world.done) - len(twin._world.done)):
        first = twin.actions()[0]
        twin.step()
        assert twin._world.done[-1] == first
    assert twin.records == lab.records


def test_step_does_the_action_that_is_named(lab: Lab) -> None:
    """An action is done as it is written, as a tuple or, from a browser, as a list."""
    assert not lab.step(["kill", 3]).brokers().alive[3]
    assert lab.run().step(("start", 3)).brokers().alive[3]


def test_run_until_a_controller_is_elected(lab: Lab) -> None:
    """The lab stands right after the write that made the new controller; nothing has been read by it yet."""
    lab.kill(1).run(until="a controller is elected")
    assert lab.brokers().controller[2]
    assert lab.partitions().leader["t-1"] == 1
    assert lab.journal("write").iloc[-1]["ops"][0][:2] == ["create", "/controller"]


def test_run_until_an_event(lab: Lab) -> None:
    """The lab stands where a broker has just begun with the event, whatever else was begun on the way."""
    lab.kill(1).run(until="ControllerChange")
    assert lab.journal("begin").event.tail(3).tolist() == ["Reelect", "ReplicaLeaderElection", "ControllerChange"]
    assert lab.brokers().handling[2] == ["ControllerChange"]


def test_run_until_a_function_says_so(lab: Lab) -> None:
    """A function of the lab is asked after each step, and before the first one."""
    lab.kill(1).run(until=lambda it: it.partitions().leader["t-1"] == -1)
    assert lab.partitions().leader["t-1"] == -1
    here = len(lab.records)
    assert len(lab.run(until=lambda it: True).records) == here


def test_run_until_what_does_not_happen(lab: Lab) -> None:
    """A cluster that comes to rest first is an error; so are words that mean nothing, and those with a meaning are listed."""
    with pytest.raises(UserError) as problem:
        lab.run(until="Reelect")
    assert "Reelect" in refusal(problem)
    with pytest.raises(UserError) as problem:
        lab.run(until="boo")
    assert (
        "'quiet'" in refusal(problem) and "AlterIsrReceived" in str(problem.value) and "BrokerRequest" not in str(problem.value)
    )


def test_run_event_goes_to_the_end_of_one_handler(lab: Lab) -> None:
    """One event of one broker's controller thread is handled whole, and no other thread runs in between."""
    lab.kill(1).run(until=lambda it: it.state["nodes"]["2"]["queues"]["controller"])
    before = len(lab.records)
    lab.run_event(2)
    new = lab.records[before:]
    own = [record.kind for record in new if record.id.node == 2]
    assert (own[0], own[-1], own.count("begin")) == ("begin", "end", 1)
    assert {record.kind for record in new if record.id.node != 2} == {"notify"}
    assert lab.brokers().handling[2] == []


def test_run_event_goes_on_with_a_handler_that_is_suspended(lab: Lab) -> None:
    """A handler in the middle of its work is brought to its end, and no second event is begun."""
    lab.kill(1).run(until="Reelect")
    begun = len(lab.journal("begin"))
    lab.run_event(2)
    assert len(lab.journal("begin")) == begun
    assert lab.brokers().handling[2] == []


# ---------------------------------------------------------------- back


@pytest.mark.parametrize("to", ["2.1.60", (2, 1, 60), -1, 0, 100])
def test_rewind_shows_the_state_after_a_record(lab: Lab, to: object) -> None:
    """A moment is the fold of the journal up to and including its record; the lab itself goes on where it was."""
    lab.kill(1).run()
    here = len(lab.records)
    moment = lab.rewind(to)
    last = moment.records[-1]
    assert moment.state == fold(lab.records[: lab.records.index(last) + 1])
    assert str(last.id) == "2.1.60" or lab.records[to if isinstance(to, int) else 0] == last
    assert len(lab.records) == here
    assert not hasattr(moment, "kill")


@pytest.mark.parametrize("to", ["9.9.9", 10**6, "yesterday", None, True, 1.5])
def test_rewind_to_what_is_not_there(lab: Lab, to: object) -> None:
    """A record that is not there is refused in one sentence."""
    with pytest.raises(UserError) as problem:
        lab.rewind(to)
    refusal(problem)


# ---------------------------------------------------------------- branches


def test_a_branch_has_the_same_past_and_a_future_of_its_own(lab: Lab) -> None:
    """A branch begins with equal records; what is done in one does not show in the other."""
    branch = lab.branch("what if")
    assert branch.records == lab.records and branch.state == lab.state
    branch.kill(1).run()
    assert lab.brokers().alive.all()
    assert lab.kill(1).run().records == branch.records


def test_a_branch_in_the_middle_of_a_handler(lab: Lab) -> None:
    """A branch taken while handlers are suspended has the same future."""
    branch = lab.kill(1).run(until="a controller is elected").branch("middle")
    assert branch.brokers().handling[2] == ["Reelect"]
    assert branch.run().records == lab.run().records


def test_a_branch_from_an_earlier_record(lab: Lab) -> None:
    """A branch from a record goes on after the step that made it, though the lab is far ahead."""
    before = str(lab.records[-1].id)
    lab.kill(1).run()
    branch = lab.branch("spared", at=before)
    assert branch.records == lab.records[: len(branch.records)]
    assert branch.brokers().alive.all() and str(branch.records[-1].id) == before
    assert branch.kill(3).run().brokers().controller[1]


def test_compare_finds_where_two_runs_part(lab: Lab) -> None:
    """Two branches part at the first act that only one of them has, which the table says; the words say what was decided then."""
    one, other = lab.branch("one").kill(1).run(), lab.branch("other").kill(3).run()
    found = one.compare(other)
    assert found.at == len(lab.records)
    assert found.table.loc["one", "what"] == "Broker 1 is killed; ZooKeeper does not know yet."
    assert found.table.loc["other", "what"] == "Broker 3 is killed; ZooKeeper does not know yet."
    assert str(found).startswith("The first decision that differs is about t-0. one: ")


def test_compare_with_a_run_that_has_ended(lab: Lab) -> None:
    """A run that is the beginning of another one parts from it where it ends."""
    branch = lab.branch("shorter")
    found = lab.kill(1).compare(branch)
    assert found.at == len(branch.records)
    assert found.table.what.tolist() == ["Broker 1 is killed; ZooKeeper does not know yet.", "It has ended."]


def test_compare_of_the_same(lab: Lab) -> None:
    """Runs that are the same have nothing in the table, and the words say how many records that are."""
    found = lab.compare(lab.branch())
    assert found.table.empty and str(len(lab.records)) in str(found)


def test_compare_sees_a_different_rule(opened: Callable[..., Lab]) -> None:
    """Two labs that differ in one rule part at the first record that this rule decides."""
    runs = [opened(topics={"t": [[1, 2, 3]]}, strategies=r) for r in (None, {"offline": lambda a, i, live: live[-1]})]
    one, other = (lab.kill(1).run() for lab in runs)
    found = one.compare(other)
    kinds = [record.kind for record in found.records if record]
    assert kinds == ["change", "change"]
    assert [record.fields["leadership"].leader for record in found.records if record] == [2, 3]


def test_story_leaves_out_what_brokers_do_not_decide(lab: Lab) -> None:
    """Times, zxids and sessions are no part of a record's story; paths, values and causes are."""
    write = next(record for record in lab.records if record.kind == "write")
    same = write._replace(at_ms=write.at_ms + 1, fields=write.fields | {"zxid": 999})
    other = write._replace(fields=write.fields | {"error": "NoNode"})
    assert comparable_record(write) == comparable_record(same) != comparable_record(other)
