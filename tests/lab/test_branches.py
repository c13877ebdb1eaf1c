"""Branches by name, a run without one of its acts, and the viewer that switches between them."""

from __future__ import annotations

import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.views.record_rows import rows
from tests.lab.support import refusal


def test_branches_go_by_their_names(lab: Lab) -> None:
    """The run and its branches, those of branches included, know each other by name; a branch without a name is none of them."""
    one = lab.branch("one")
    two = one.branch("two")
    lab.branch()
    assert dict(lab.branches) == dict(two.branches) == {"main": lab, "one": one, "two": two}
    assert one.kill(1).run().brokers().alive.to_dict() == {1: False, 2: True, 3: True}
    assert lab.brokers().alive.all()


def test_a_branch_from_an_earlier_record(lab: Lab) -> None:
    """A branch may begin at a record, as a fork does."""
    here = len(lab.records) - 1
    lab.kill(1).run()
    assert lab.branch("spared", at=here).brokers().alive.all()


@pytest.mark.parametrize("name", ["main", "one", "", "  ", 3])
def test_names_that_cannot_be(lab: Lab, name: str) -> None:
    """A name that is taken, or is none, is refused."""
    lab.branch("one")
    with pytest.raises(UserError) as problem:
        lab.branch(name)
    refusal(problem)


def test_compare_by_name(lab: Lab) -> None:
    """Two names, a name and a lab, or one name alone: the same first difference, and what differs in the end."""
    other = lab.branch("other").kill(3).run()
    lab.kill(1).run()
    found = lab.compare("main", "other")
    assert found.names == ("main", "other")
    assert found.at == lab.compare("other").at == lab.compare(other).at == other.compare(lab, other).at
    assert found.differences["brokers"] == {
        "1": ["dead", "controller, epoch 1"],
        "2": ["controller, epoch 2", "alive"],
        "3": ["alive", "dead"],
    }
    assert found.differences["partitions"]["t-1"] == ["leader", "isr", "leader_epoch", "controller_epoch", "zk_version"]
    assert ">controller, epoch 2</mark>" in found._repr_html_()


def test_compare_with_a_name_that_none_has(lab: Lab) -> None:
    """`compare` refuses a name that no branch has with the names of the branches; a rewound run has no branches."""
    lab.branch("other")
    for run in (lab, lab.rewind(5)):
        with pytest.raises(UserError) as problem:
            run.compare("missing")
        assert "missing" in refusal(problem)
        assert ("'main' and 'other'" in str(problem.value)) == (run is lab)


# ---------------------------------------------------------------- without


def test_without_a_death(lab: Lab) -> None:
    """Without the death none of its consequences happens; the later acts happen."""
    before = len(lab.records)
    lab.kill(2).run().create_topic("u", [[1, 3]]).run()
    found = lab.without("leader of t-0")
    branch = lab.branches["without: kill broker 2"]
    assert (found.names, found.at) == (("main", "without: kill broker 2"), before)
    assert branch.brokers().alive.all()
    assert branch.partitions().leader.to_dict() == {"t-0": 2, "t-1": 1, "u-0": 1}
    assert found.differences["brokers"] == {"2": ["dead", "alive"]}
    with pytest.raises(UserError):
        branch.step()


def test_without_ends_where_never_having_done_it_ends(lab: Lab) -> None:
    """The run without an act comes to the same end as the run in which it was not done, in another order at most."""
    never = lab.branch("never").kill(1).run().start(1).run()
    lab.kill(3).run().kill(1).run().start(1).run()
    stop = next(record.id for record in lab.records if record.kind == "stop")
    lab.without(str(stop))
    found = lab.branches["without: kill broker 3"].compare(never)
    assert found.differences == {"brokers": {}, "partitions": {}, "znodes": []}


def test_what_is_impossible_without_it(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """A start of a broker that has not died is left out with a sentence, and the later acts happen."""
    lab.kill(3).run().start(3).run().zk.delete("/controller").run()
    stop = next(record.id for record in lab.records if record.kind == "stop")
    lab.without(str(stop))
    assert "left out too: start broker 3." in capsys.readouterr().out
    branch = lab.branches["without: kill broker 3"]
    assert [action[0] for action in branch._world.done].count("delete") == 1


def test_a_session_that_expires_by_itself_is_not_taken_from_the_living(lab: Lab) -> None:
    """That a dead broker's session ended was no act: without the death the living one keeps its session."""
    lab.kill(3).run()
    lab.without(-1)
    branch = lab.branches["without: kill broker 3"]
    assert not [record for record in branch.records if record.kind in ("session_lost", "close")]


def test_without_an_expiry(lab: Lab) -> None:
    """What a living broker does after its session has expired goes back to that expiry."""
    lab.expire_session(1).run()
    found = lab.without(len(lab.records) - 1)
    assert found.names[1] == "without: the session of broker 1 expires"
    assert lab.branches[found.names[1]].brokers().controller[1]


def test_without_twice(lab: Lab) -> None:
    """The same again has another name."""
    lab.kill(1).run()
    names = [lab.without(-1).names[1] for _ in range(2)]
    assert names == ["without: kill broker 1", "without: kill broker 1 (2)"]


def test_without_a_record_that_is_no_act(lab: Lab) -> None:
    """The record of the run itself, and a record that is not there, are refused."""
    for record in (0, "9.9.9"):
        with pytest.raises(UserError) as problem:
            lab.without(record)
        refusal(problem)


# ---------------------------------------------------------------- the viewer


def test_the_viewer_switches(lab: Lab) -> None:
    """The viewer names the branches, shows the one that is chosen, and follows what happens in it."""
    viewer = lab.viewer
    other = lab.branch("other")
    assert (viewer.branches, viewer.branch) == (["main", "other"], "main")
    viewer._on_message(None, {"do": "switch", "name": "other", "n": 1}, None)
    assert (viewer.branch, viewer.title, viewer.done) == ("other", "other", 1)
    other.kill(1)
    assert viewer.records == rows(other.records)
    lab.kill(2)
    assert viewer.records == rows(other.records)
    viewer.click_switch("main")
    assert viewer.records == rows(lab.records)
    with pytest.raises(UserError, match="main and other"):
        viewer.click_switch("third")


def test_the_viewer_branches_off(lab: Lab) -> None:
    """A branch from where the reader is, with or without a name, is shown at once and is the lab's."""
    viewer, here = lab.viewer, len(lab.records) - 1
    lab.kill(1).run()
    viewer._on_message(None, {"do": "branch", "name": "", "at": here, "n": 1}, None)
    assert (viewer.branch, viewer.at, viewer.error) == ("branch 1", here, "")
    assert lab.branches["branch 1"].records == lab.records[: here + 1]
    viewer.click_branch("named")
    assert (viewer.branch, list(lab.branches)) == ("named", ["main", "branch 1", "named"])
    viewer._on_message(None, {"do": "branch", "name": "named", "at": 3, "n": 2}, None)
    assert "already" in viewer.error


def test_the_viewer_puts_a_branch_beside(lab: Lab) -> None:
    """What is beside travels with where the two part, and grows with its run; an empty name takes it away."""
    viewer, other = lab.viewer, lab.branch("other")
    viewer.click_compare("other")
    assert (viewer.other_name, viewer.parted, viewer.other) == ("other", -1, rows(other.records))
    here = len(lab.records)
    other.kill(3)
    assert (viewer.parted, viewer.other, len(viewer.records)) == (here, rows(other.records), here)
    lab.kill(1).run()
    assert (viewer.parted, viewer.records) == (here, rows(lab.records))
    viewer._on_message(None, {"do": "compare", "name": ""}, None)
    assert (viewer.other_name, viewer.parted, viewer.other) == ("", -1, [])


def test_the_viewer_plays_without(lab: Lab) -> None:
    """The button plays the run again without what the record goes back to, and puts that beside this run."""
    viewer = lab.viewer
    lab.kill(1).run()
    viewer._on_message(None, {"do": "without", "at": viewer.at, "n": 1}, None)
    assert (viewer.error, viewer.branch, viewer.other_name) == ("", "main", "without: kill broker 1")
    assert viewer.records[viewer.parted]["kind"] == "stop"
