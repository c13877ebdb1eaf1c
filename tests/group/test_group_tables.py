"""The coordinator's tables: every pair of states, every event, every rule, every setting."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest

from kcontrol.core.events import Event
from kcontrol.group import events, handlers
from kcontrol.group.context import CONFIGS, GroupConfig, GroupContext
from kcontrol.group.group_machine import GROUP_TRANSITIONS, can_rebalance, first_state
from kcontrol.group.group_rules import group_rules
from kcontrol.group.model import Group, GroupState

# Kafka's validPreviousStates, target by target. Source: GroupMetadata.scala (2.8).
SOURCES = {
    "PreparingRebalance": {"Stable", "CompletingRebalance", "Empty"},
    "CompletingRebalance": {"PreparingRebalance"},
    "Stable": {"CompletingRebalance"},
    "Empty": {"PreparingRebalance"},
    "Dead": {"Stable", "PreparingRebalance", "CompletingRebalance", "Empty", "Dead"},
}
# The same with the names of 2.8. Source: GroupMetadata.scala (0.9).
SOURCES_0_9 = {
    "PreparingRebalance": {"Stable", "CompletingRebalance"}, "CompletingRebalance": {"PreparingRebalance"},
    "Stable": {"CompletingRebalance"}, "Empty": set(), "Dead": {"Stable", "PreparingRebalance", "CompletingRebalance"},
}  # fmt: skip


@pytest.mark.parametrize("source", GroupState, ids=str)
@pytest.mark.parametrize("target", GroupState, ids=str)
def test_a_pair_of_group_states_is_a_row_or_none(source: GroupState, target: GroupState) -> None:
    """Each table has a row for just the pairs that Kafka allows."""
    for release, sources in (("0.9", SOURCES_0_9), ("0.10.0", SOURCES_0_9), ("0.10.1", SOURCES), ("2.8", SOURCES)):
        assert (GROUP_TRANSITIONS.for_(release).find(source, target) is not None) == (str(source) in sources[str(target)])


def test_a_group_table_can_be_read() -> None:
    """Each row says what the move means and has an action, and none writes a state znode."""
    assert all(row.note and row.note == row.note.strip() and callable(row.action) for row in GROUP_TRANSITIONS)
    assert {row.write for row in GROUP_TRANSITIONS} == {None}


@pytest.mark.parametrize("release", ["0.9", "0.10.0", "0.10.1", "0.11.0", "1.0", "1.1", "2.1", "2.4", "2.8", "3.9"])
def test_every_release_has_its_machine(release: str) -> None:
    """A new group can rebalance in each; Empty exists from 0.10.1 on."""
    context = GroupContext(group_rules(release), GroupConfig.of(release))
    assert can_rebalance(context, Group("g", first_state(context.rules)))
    assert any(GroupState.EMPTY in row[:2] for row in GROUP_TRANSITIONS.for_(release)) == (release not in ("0.9", "0.10.0"))


def test_a_release_before_0_9_has_no_coordinator() -> None:
    """It is refused, and so is one after the last with ZooKeeper."""
    for release in ("0.8.2", "4.0"):
        with pytest.raises(ValueError, match=r"the releases are 0\.9"):
            group_rules(release)


def test_every_setting_is_a_field() -> None:
    """CONFIGS names the fields of `GroupConfig`."""
    assert set(CONFIGS) == {f.name for f in fields(GroupConfig)}


def test_every_group_event_has_a_handler() -> None:
    """And no other has one; the bases are not handled."""
    found = {cls for _, cls in inspect.getmembers(events, inspect.isclass) if issubclass(cls, Event)}
    assert set(handlers.HANDLERS) == found - {Event, events.TimedEvent, events.GroupRequest, events.Appended}
