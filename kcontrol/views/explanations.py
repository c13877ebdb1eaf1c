"""Functions that explain journal records: why an event or a transition happens, and which method of Kafka does it.

The texts are in `static/meanings.json`, one table for Python and for the viewer's JavaScript, and in the transition tables.
"""

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
    """A transition table for the viewer; a row is [state before, state after, sentence]."""
    rows = [[str(row.source), str(row.target), row.note] for row in table]
    return {"source": table.source.partition(" ")[0], "method": method, "states": list(map(str, table.states)), "rows": rows}


def _meanings() -> dict[str, Any]:
    """By section and key; the section "machines" comes from the transition tables."""
    written: dict[str, Any] = json.loads((STATIC / "meanings.json").read_text(encoding="utf-8"))
    return written | {"machines": {table.name: _machine(table, written["machines"][table.name]) for table in TABLES}}


MEANINGS: dict[str, Any] = _meanings()


def rule(record: Record) -> str:
    """Return in words why the event of a `begin` record has occurred, or why a `change` or `group` record has its transition.

    Return "" for any other record.
    """
    fields, entry = record.fields, None
    if record.kind == "group":
        return str(fields["rule"])
    if record.kind == "begin":
        entry = MEANINGS["events"].get(fields["event"])
    elif record.kind == "change" and fields["rule"]:
        entry = MEANINGS["rules"].get(fields["rule"], [fields["rule"]])
    elif record.kind == "change":
        entry = [note(fields["machine"], str(fields["source"]), str(fields["target"]))]
    return str(entry[0]) if entry else ""


def note(machine: str, source: str, target: str) -> str:
    """The table's sentence about a transition, "" if illegal. Raises KeyError for an unknown machine."""
    rows = MEANINGS["machines"][machine]["rows"]
    return next((str(row[2]) for row in rows if row[:2] == [source, target]), "")


def row_of(record: Record) -> str:
    """As "OnlinePartition -> OfflinePartition: sentence"; "" for a record that is no `change`."""
    fields = record.fields
    if record.kind != "change":
        return ""
    source, target = str(fields["source"]), str(fields["target"])
    return f"{source} -> {target}: {note(fields['machine'], source, target)}"


def decided(record: Record, release: str = "") -> list[str]:
    """Its transition, the reason, and its method and file in Kafka, as far as there are any."""
    row, why, where = row_of(record), rule(record), kafka_source(record, release)
    if row.endswith(f": {why}") or record.kind == "group":  # the sentence of a transition of a group ends with the rule
        why = ""
    return [found for found in (row, f"rule: {why}" if why and row else why, where) if found]


def kafka_source(record: Record, release: str = "") -> str:
    """Empty for a record that no method of Kafka corresponds to."""
    section, key = _entry(record)
    # The place in the run's release, if the table has it.
    for line, table in MEANINGS["earlier"].items():
        if f"{release}.".startswith(f"{line}.") and key in table[section]:
            return f"{table[section][key]} ({line})" if table[section][key] else ""
    found = _source(section, key)
    return f"{found} ({MEANINGS['release']})" if found else ""


def _entry(record: Record) -> tuple[str, str]:
    """Section and key in `meanings.json`, such as ("events", "TopicChange")."""
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
