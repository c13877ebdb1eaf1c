"""The table of meanings says of events, rules and machines what the code has, and the viewer shows what Python reads from it."""

from __future__ import annotations

import inspect
import re

import pytest

from kcontrol.broker import events as broker_events
from kcontrol.controller.leader_election import STRATEGIES
from kcontrol.core import events
from kcontrol.core.transitions import TransitionTable
from kcontrol.journal.journal import Record
from kcontrol.views.explanations import MEANINGS, TABLES, decided, kafka_source, rule
from kcontrol.views.record_rows import rows
from kcontrol.views.text import SENTENCES
from tests.views.support import Ask, random_run

ABSTRACT = {"Event", "BrokerRequest"}


def test_every_event_has_a_meaning() -> None:
    """The events in the table are the events that there are."""
    named = [*inspect.getmembers(events, inspect.isclass), *inspect.getmembers(broker_events, inspect.isclass)]
    found = {name for name, kind in named if issubclass(kind, events.Event)}
    assert set(MEANINGS["events"]) == found - ABSTRACT


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_page_has_the_tables_notes(ask: Ask, table: TransitionTable) -> None:
    """The viewer's script has the states, rows and notes of each machine from its transition table, and the table's file."""
    machine = ask("return viewer.MACHINES[given];", table.name)
    assert machine["states"] == [state.value for state in table.states]
    assert {(source, target): note for source, target, note in machine["rows"]} == {
        (row.source.value, row.target.value): row.note for row in table
    }
    assert table.source == f"{machine['source']} ({MEANINGS['release']})"


def test_every_rule_has_a_meaning() -> None:
    """Every strategy of the elections, and every rule that a record of any random run names, is in the table."""
    used = {r.fields["rule"] for seed in range(4) for r in random_run(seed).journal.records if r.kind == "change"}
    assert set(STRATEGIES) | (used - {""}) <= set(MEANINGS["rules"])
    assert set(MEANINGS["kinds"]) <= set(SENTENCES)


EXPLAINED = """
    const timeline = viewer.timelineOf({ get: (name) => (name === "records" ? given : undefined) });
    return given.map((_, index) => timeline.explained(index));
"""


def test_the_viewer_has_pythons_explanations(ask: Ask) -> None:
    """The viewer finds for each record the row, the rule and Kafka's source that Python finds for the run's release."""
    records = list(random_run(3).journal.records)
    assert records[0].kind == "run"
    for release in ("2.8", "0.8.1", "0.8.1.1", "0.8.10"):
        records[0] = records[0]._replace(fields=records[0].fields | {"release": release})
        mine = [decided(record.to_json(), release) for record in records]
        assert ask(EXPLAINED, rows(records)) == mine
        assert len({tuple(words) for words in mine}) > 15
        assert any(words[-1].endswith("(0.8.1)") for words in mine if words) == release.startswith("0.8.1.") | (
            release == "0.8.1"
        )


def test_where_kafka_has_it_is_a_file_and_a_method() -> None:
    """Every source names what it is in which file of Kafka's, and there is one for each event, each rule and each machine."""
    machines = [f"{machine['method']} in {machine['source']}" for machine in MEANINGS["machines"].values()]
    entries = [*MEANINGS["events"].values(), *MEANINGS["rules"].values()]
    earlier = [where for table in MEANINGS["earlier"].values() for part in table.values() for where in part.values()]
    for where in filter(None, [*MEANINGS["kinds"].values(), *machines, *(entry[1] for entry in entries), *earlier]):
        assert re.fullmatch(r"[\w ]+ in \w+\.scala( and \w+\.scala)?", where), where
    for table in MEANINGS["earlier"].values():
        assert all(set(part) <= set(MEANINGS[section]) for section, part in table.items())
    named = {name for name, entry in MEANINGS["events"].items() if entry[1]}
    assert named | {name for table in MEANINGS["earlier"].values() for name in table["events"]} == set(MEANINGS["events"])


def test_a_learners_own_rule_is_named() -> None:
    """A rule that is not in the table is shown by its name."""
    change = next(r for r in random_run(3).journal.records if r.kind == "change" and r.fields["rule"])
    mine = Record(change.id, "change", None, 0, change.fields | {"rule": "my own"}).to_json()
    assert rule(mine) == "my own"
    assert kafka_source(mine) == f"doHandleStateChanges in {mine.fields['machine'].capitalize()}StateMachine.scala (2.8)"
