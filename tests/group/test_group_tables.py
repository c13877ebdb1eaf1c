"""The coordinator's tables: every pair of states, every event, every rule, every setting."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest

from kcontrol.events import Event
from kcontrol.generations import GROUP_PROTOCOL_RULES, GROUP_RULES, GroupRules, group_rules
from kcontrol.group import events, handlers
from kcontrol.group.context import CONFIGS, GroupConfig
from kcontrol.group.group_machine import GROUP_TRANSITIONS, GROUP_TRANSITIONS_0_9, can_rebalance, first_state, transitions
from kcontrol.group.model import Group, GroupState
from kcontrol.transitions import TransitionTable

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
    "PreparingRebalance": {"Stable", "CompletingRebalance"},
    "CompletingRebalance": {"PreparingRebalance"},
    "Stable": {"CompletingRebalance"},
    "Empty": set(),
    "Dead": {"Stable", "PreparingRebalance", "CompletingRebalance"},
}


@pytest.mark.parametrize("source", GroupState, ids=str)
@pytest.mark.parametrize("target", GroupState, ids=str)
def test_a_pair_of_group_states_is_a_row_or_none(source: GroupState, target: GroupState) -> None:
    """Each table has a row for just the pairs that Kafka allows."""
    assert (GROUP_TRANSITIONS.find(source, target) is not None) == (str(source) in SOURCES[str(target)])
    assert (GROUP_TRANSITIONS_0_9.find(source, target) is not None) == (str(source) in SOURCES_0_9[str(target)])


@pytest.mark.parametrize("table", [GROUP_TRANSITIONS, GROUP_TRANSITIONS_0_9], ids=lambda table: table.name)
def test_a_group_table_can_be_read(table: TransitionTable) -> None:
    """Each row says what the move means and has an action."""
    assert all(row.note and row.note == row.note.strip() and callable(row.action) for row in table)


@pytest.mark.parametrize("release", ["0.9", "0.10.0", "0.10.1", "0.11.0", "1.0", "1.1", "2.1", "2.4", "2.8", "3.9"])
def test_every_release_has_its_machine(release: str) -> None:
    """A new group can rebalance in each; Empty exists from 0.10.1 on."""
    rules = group_rules(release)
    assert can_rebalance(rules, Group("g", first_state(rules)))
    assert any(GroupState.EMPTY in row[:2] for row in transitions(rules)) == (release not in ("0.9", "0.10.0"))


def test_a_release_before_0_9_has_no_coordinator() -> None:
    """It is refused, and so is one after the last with ZooKeeper."""
    for release in ("0.8.2", "4.0"):
        with pytest.raises(ValueError, match=r"name a release from 0\.9"):
            group_rules(release)


def test_every_group_rule_is_a_field() -> None:
    """The two tables have no row in common and together name the fields of `GroupRules`."""
    assert set(GROUP_RULES) & set(GROUP_PROTOCOL_RULES) == set()
    assert set(GROUP_RULES) | set(GROUP_PROTOCOL_RULES) == {f.name for f in fields(GroupRules)} - {"release"}
    assert set(CONFIGS) == {f.name for f in fields(GroupConfig)}


def test_every_group_event_has_a_handler() -> None:
    """And no other has one; the bases are not handled."""
    found = {cls for _, cls in inspect.getmembers(events, inspect.isclass) if issubclass(cls, Event)}
    assert set(handlers.HANDLERS) == found - {Event, events.Timed, events.GroupRequest, events.Appended}
