"""What a learner sees of the invariants: the table, a run that keeps them, one that does not, and one's own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kcontrol import Lab
from kcontrol.cluster.world import World
from kcontrol.controller.leader_election import Elected, ElectionInput
from kcontrol.core.errors import UserError
from kcontrol.search.invariants import INVARIANTS, violation
from tests.lab.support import refusal
from tests.search.support import pasted

OLD = (
    "ISR never empty",
    "a deposed controller writes nothing",
    "one writer per epoch",
    "only the named controller writes",
    "no epoch from the future",
    "one controller", "leaders know", "one leader, one protocol", "assigned once",
    "answered once", "a parked member stays", "a removed member has no deadline",
    "a generation never falls", "committed offsets are stored",
)  # fmt: skip


def test_the_table_says_what_is_promised_since_when(opened: Callable[..., Lab]) -> None:
    """One row per invariant in words, with its first release; 0.8.1 does not promise those that came later."""
    found = opened(1).tables.invariants()
    assert list(found.index) == [row.name for row in INVARIANTS]
    assert found.promised.all() and found.since["ISR never empty"] == "1.1"
    old = opened(1, release="0.8.1").tables.invariants()
    assert tuple(old.index[~old.promised]) == OLD


def test_a_run_that_keeps_them(lab: Lab) -> None:
    """After a failover every row holds, and the lab itself has taken no step."""
    lab.kill(1).run()
    before = len(lab.records)
    found = lab.tables.invariant_checks()
    assert set(found.outcome) == {"holds"} and found.step.isna().all() and "scenario" not in found.attrs
    assert len(lab.records) == before


@pytest.mark.breaks_invariants
def test_a_rule_of_ones_own_that_breaks_one(opened: Callable[..., Lab]) -> None:
    """Of a run that breaks a promise the table names the row, the first step and its action, and has the run to paste."""

    def first_of_all(candidates: ElectionInput) -> Elected:
        return Elected(candidates.assignment[-1], candidates.isr[:1])

    lab = opened(topics={"t": [[2, 3, 1]]}, strategies={"offline": first_of_all}).kill(2).run()
    found = lab.tables.invariant_checks()
    row = found.loc["leader in ISR"]
    assert (row.outcome, row.what) == ("broken", "leader in ISR: t-0: leader 1 is not in ISR [2]")
    assert row.action == "('advance', 1, 'controller')" and 0 < row.step <= len(lab._world.done)
    assert found.attrs["scenario"].splitlines()[-1] == f"# {row.what}"


def test_the_scenario_can_be_pasted(opened: Callable[..., Lab]) -> None:
    """What a broken invariant of one's own leaves behind is a program that leads to the same world."""

    def no_broker_dies(world: World) -> str | None:
        """No broker dies."""
        return "a broker has died" if any(record.kind == "stop" for record in world.last_step) else None

    lab = opened(topics={"t": [[2, 3]]}).kill(3)
    found = lab.tables.invariant_checks(no_broker_dies)
    assert found.loc["no_broker_dies", ["outcome", "action", "sentence"]].tolist() == ["broken", "('kill', 3)", "No broker dies."]
    world = pasted(found.attrs["scenario"])
    assert no_broker_dies(world) == "a broker has died" and violation(world) is None


def test_invariants_about_znodes_that_a_client_has_written_are_void(lab: Lab) -> None:
    """After a write by a client that is no broker, the invariants about the znode are void and the others hold."""
    lab.zk.set("/controller_epoch", "9").run()
    found = lab.tables.invariant_checks().outcome
    assert found["one controller"] == "void" and found["leader in ISR"] == "holds"


def test_functions_that_are_no_invariants_are_refused(lab: Lab) -> None:
    """A function without a docstring is refused, and an error that the function raises becomes a sentence."""
    with pytest.raises(UserError) as problem:
        lab.tables.invariant_checks(lambda world: None)
    assert "docstring" in refusal(problem)

    def careless(world: World) -> str:
        """It is careless."""
        return str(world.processes[99])

    with pytest.raises(UserError) as problem:
        lab.tables.invariant_checks(careless)
    assert "careless failed at step 1: KeyError: 99" in refusal(problem)
