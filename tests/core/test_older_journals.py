"""Journals of version 2 of the schema, written when version 2 was the present one, each with the state that it folded to."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from kcontrol import Lab
from kcontrol.broker.context import BrokerContext
from kcontrol.controller.context import ControllerContext
from kcontrol.core.errors import UserError
from kcontrol.group.context import GroupContext
from kcontrol.journal import journal_file, record_fields
from kcontrol.journal.fold import fold
from kcontrol.journal.journal import JOURNAL_VERSION, OUTSIDE, Record, RecordId
from kcontrol.journal.journal_file import CONTEXT_FIELDS_3, FIELDS_3, KINDS_3, RULES_3
from kcontrol.views import kafka_words

CONTEXTS = {
    name: {field.name for field in fields(context)}
    for name, context in (("controller", ControllerContext), ("broker", BrokerContext), ("group", GroupContext))
}
KEPT = Path(__file__).parent / "journals"
STATES: dict[str, Any] = json.loads((KEPT / "version-2-states.json").read_text())


def kept(name: str) -> Path:
    return KEPT / f"version-2-{name}.jsonl"


def lines(name: str) -> list[dict[str, Any]]:
    """Return the lines of a kept journal as they are in the file, without the last line."""
    return [json.loads(line) for line in kept(name).read_text().splitlines()[:-1]]


def of_version_3(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state that version 2 of the schema folded to, with the names that version 3 gives to its parts."""
    nodes = {}
    for broker, node in state["nodes"].items():
        rooms = {
            room: {CONTEXT_FIELDS_3.get(field, field): value for field, value in node[room].items()}
            for room in ("controller", "broker", "group")
            if room in node
        }
        hosted = rooms["broker"].get("hosted", {})
        for tp, held in hosted.items():
            hosted[tp] = {"leadership": held["value"], "replicas": held["replicas"], "pending_isr": held["pending_isr"]}
        nodes[broker] = {name: value for name, value in node.items() if name != "notices"} | rooms
        nodes[broker]["notifications"] = node["notices"]
    kept_parts = {name: part for name, part in state.items() if name != "questions"}
    return kept_parts | {"nodes": nodes, "to_controller": state["questions"]}


@pytest.mark.parametrize("name", STATES)
def test_a_journal_of_version_2_folds_to_the_state_of_its_time(name: str) -> None:
    """The records of a kept journal pass the check of their fields and fold to the kept state."""
    records = journal_file.read(kept(name))
    assert len(records) == len(lines(name))
    assert records[0].fields["journal_version"] == JOURNAL_VERSION == 3
    assert fold(records) == of_version_3(STATES[name])


@pytest.mark.parametrize("name", STATES)
def test_no_record_of_version_2_keeps_an_old_name(name: str) -> None:
    """A record that was read has all fields of its line; its kind, its fields and the fields of contexts have names of today."""
    for record, line in zip(journal_file.read(kept(name)), lines(name), strict=True):
        old = line["kind"]
        assert record.kind == KINDS_3.get(old, old)
        assert list(record.fields) == [FIELDS_3.get((old, field), field) for field in line["fields"]]
        if record.kind == "update":
            assert record.fields["field"] in CONTEXTS[record.fields["context"]]
        assert record.fields.keys() >= required(record.kind)


def required(kind: str) -> set[str]:
    """Return the fields that every record of a kind has."""
    absent = record_fields.Absent
    return {name for name, type_ in record_fields.FIELDS[kind].items() if absent not in getattr(type_, "__args__", ())}


def test_the_kept_journals_have_every_name_that_has_changed() -> None:
    """Each renamed kind, field and field of a context is in a kept journal: no row of the tables of names is untested."""
    found = [line for name in STATES for line in lines(name)]
    assert {line["kind"] for line in found} >= KINDS_3.keys()
    assert {(line["kind"], field) for line in found for field in line["fields"]} >= FIELDS_3.keys()
    assert {line["fields"]["field"] for line in found if line["kind"] == "learn"} >= CONTEXT_FIELDS_3.keys() | {"hosted"}


def test_a_renamed_rule_is_read_under_its_present_name() -> None:
    """A transition of version 2 has the rule under which the log lines of Kafka look for it."""
    found = {old: Record(RecordId(1, 1, 2), "change", None, 0, {"rule": old}) for old in (*RULES_3, "offline")}
    rules = {old: journal_file.upgraded(record, 2).fields["rule"] for old, record in found.items()}
    assert rules == {**RULES_3, "offline": "offline"}
    assert kafka_words.NO_LEADERSHIP in RULES_3.values()


def test_a_former_kind_leads_to_its_present_name() -> None:
    """A journal asked for the records of a former kind names the present kind in one sentence."""
    run = Lab(brokers=1, runs=None)
    for former, present in KINDS_3.items():
        with pytest.raises(UserError, match=rf"^Records of kind '{former}' have another name now: use journal\('{present}'\)\.$"):
            run.journal(former)


def test_the_tables_of_names_lead_to_names_of_today() -> None:
    """The new names are rows of the table of fields; no old kind is a kind of today, so that Spark needs no version."""
    assert record_fields.FIELDS.keys() >= set(KINDS_3.values())
    assert not KINDS_3.keys() & record_fields.FIELDS.keys()
    for (old, _), field in FIELDS_3.items():
        assert field in record_fields.FIELDS[KINDS_3.get(old, old)]


@pytest.mark.parametrize("version", [1, 2])
def test_a_record_of_an_unknown_kind_is_read_as_it_is(version: int) -> None:
    """A kind that no table names keeps its kind and its fields, also those that other kinds have renamed."""
    record = Record(RecordId(OUTSIDE, 0, 2), "later", None, 0, {"value": 1, "fence": 2, "field": "refused"})
    assert journal_file.upgraded(record, version) == record
