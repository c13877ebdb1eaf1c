"""Functions that explain journal records: why an event or a transition happens, and which method of Kafka does it.

The texts are in `static/meanings.json`, one table for Python and for the viewer's JavaScript. The transition tables of the three
state machines are added to it: their states, and for each transition a sentence, which is called the note of the transition.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from kcontrol.controller.partition_machine import PARTITION_TRANSITIONS
from kcontrol.controller.replica_machine import REPLICA_TRANSITIONS
from kcontrol.core.rule_fields import LAST_RELEASE
from kcontrol.core.transitions import TransitionTable
from kcontrol.group.group_machine import GROUP_TRANSITIONS
from kcontrol.journal.journal import Record

STATIC = files("kcontrol.views") / "static"

TABLES = tuple(table.for_(LAST_RELEASE) for table in (PARTITION_TRANSITIONS, REPLICA_TRANSITIONS, GROUP_TRANSITIONS))


def _machine(table: TransitionTable, method: str) -> dict[str, Any]:
    """Return a transition table as a dict for the viewer: `source`, `method`, `states` and `rows`.

    `source` and `method` are its file and method in Kafka. A row is [state before, state after, sentence about the transition].
    """
    rows = [[str(row.source), str(row.target), row.note] for row in table]
    return {"source": table.source.partition(" ")[0], "method": method, "states": list(map(str, table.states)), "rows": rows}


def _meanings() -> dict[str, Any]:
    """Return the table of `meanings.json` with the transition tables of the three state machines under "machines"."""
    written: dict[str, Any] = json.loads((STATIC / "meanings.json").read_text(encoding="utf-8"))
    return written | {"machines": {table.name: _machine(table, written["machines"][table.name]) for table in TABLES}}


MEANINGS: dict[str, Any] = _meanings()


def rule(record: Record) -> str:
    """Return in words why the event of a `begin` record of the journal, or the transition of a `change` record, happens.

    Return "" for a record of any other kind, for an event without an entry in `meanings.json`, and for an illegal transition
    without a rule.
    """
    fields, entry = record.fields, None
    if record.kind == "begin":
        entry = MEANINGS["events"].get(fields["event"])
    elif record.kind == "change" and fields["rule"]:
        entry = MEANINGS["rules"].get(fields["rule"], [fields["rule"]])
    elif record.kind == "change":
        entry = [note(fields["machine"], str(fields["source"]), str(fields["target"]))]
    return str(entry[0]) if entry else ""


def note(machine: str, source: str, target: str) -> str:
    """Return the sentence that the transition table of a state machine has about a transition.

    `machine` is "partition", "replica" or "group"; `source` and `target` are kcontrol's names of the states. Return "" if the
    transition is illegal. Raises KeyError for any other machine.
    """
    rows = MEANINGS["machines"][machine]["rows"]
    return next((str(row[2]) for row in rows if row[:2] == [source, target]), "")


def row_of(record: Record) -> str:
    """Return the transition of a `change` record of the journal as "A -> B: sentence".

    The sentence is that of the transition table, "" for an illegal transition. Return "" for a record of any other kind.
    """
    fields = record.fields
    if record.kind != "change":
        return ""
    source, target = str(fields["source"]), str(fields["target"])
    return f"{source} -> {target}: {note(fields['machine'], source, target)}"


def decided(record: Record, release: str = "") -> list[str]:
    """Return the lines that explain a journal record: its transition, the reason, and its method and file in Kafka.

    A line that the record does not have is left out; the list is empty for a record without an explanation. `release` is the
    run's release, by which the place in Kafka is chosen; with "" the place is that of the release named in `meanings.json`.
    """
    row, why, where = row_of(record), rule(record), kafka_source(record, release)
    if row.endswith(f": {why}"):
        why = ""
    return [found for found in (row, f"rule: {why}" if why and row else why, where) if found]


def kafka_source(record: Record, release: str = "") -> str:
    """Return the method and file of Kafka behind a journal record, and in parentheses the release that has them.

    Return "" if Kafka has no counterpart.

    The place is that of `release`, the run's release, if `meanings.json` has it, else that of the release named there.
    """
    section, key = _entry(record)
    for line, table in MEANINGS["earlier"].items():
        if f"{release}.".startswith(f"{line}.") and key in table[section]:
            return f"{table[section][key]} ({line})" if table[section][key] else ""
    found = _source(section, key)
    return f"{found} ({MEANINGS['release']})" if found else ""


def _entry(record: Record) -> tuple[str, str]:
    """Return the section and the key under which `meanings.json` has the method and file of Kafka behind a journal record.

    They are "events" and the event for a `begin` record, "kinds" and the kind for a record that is no `change`. For a `change`
    record they are "rules" and its rule if `meanings.json` has the rule, else "machines" and its machine. If Kafka has no
    counterpart of the record, the section does not have the key.
    """
    fields = record.fields
    if record.kind == "begin":
        return "events", fields["event"]
    if record.kind != "change":
        return "kinds", record.kind
    return ("rules", fields["rule"]) if fields["rule"] in MEANINGS["rules"] else ("machines", fields["machine"])


def _source(section: str, key: str) -> str:
    found = MEANINGS[section].get(key, "")
    if section == "machines":
        return f"{found['method']} in {found['source']}"
    return str(found if section == "kinds" else found[1] if found else "")
