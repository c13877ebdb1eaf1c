"""The grid of reactions: a cell per state and request, from the rows by which the coordinator runs, and the cell used last."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.lab.support.table_display import MARK
from tests.lab.group_runs import RUNS, played
from tests.lab.support import refusal

Opened = Callable[..., Lab]


def marked(lab: Lab) -> list[tuple[str, str, str]]:
    """State, request and reaction of each marked cell."""
    grid = lab.tables.reaction_grid()
    return [
        (state, request, text.removeprefix(MARK))
        for state, row in grid.iterrows()
        for request, text in row.items()
        if MARK in text
    ]


def test_the_cell_used_last() -> None:
    """A heartbeat during a rebalance marks its cell, and the next request marks another one; the HTML highlights it too."""
    lab = played("2.8 join").branch()
    lab.group.heartbeat("anna").run()
    assert marked(lab) == [("PreparingRebalance", "Heartbeat", "REBALANCE_IN_PROGRESS")]
    assert f"<mark>{MARK}REBALANCE_IN_PROGRESS</mark>" in str(lab.tables.reaction_grid()._repr_html_()).replace("<wbr>", "")
    lab.group.leave("bert").run()
    assert marked(lab) == [("PreparingRebalance", "LeaveGroup", "remove the member")]


@pytest.mark.parametrize("name", RUNS)
def test_states_are_those_of_the_release(name: str) -> None:
    """0.9 has AwaitingSync and no Empty, 2.8 has Empty and CompletingRebalance; one cell at most is marked in every run."""
    lab = played(name)
    has = set(lab.tables.reaction_grid().index)
    assert ({"AwaitingSync"} <= has) == (name.startswith("0.9")) and ({"Empty", "CompletingRebalance"} <= has) == name.startswith(
        "2.8"
    )
    assert len(marked(lab)) == 1


def test_a_run_without_requests(opened: Opened) -> None:
    """Without a request nothing is marked; a release without coordinators gets one sentence."""
    assert marked(opened(1)) == []
    with pytest.raises(UserError) as problem:
        opened(1, release="0.8.2").tables.reaction_grid()
    assert refusal(problem)
