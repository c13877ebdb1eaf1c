"""What records, events and rules mean, and where Kafka does the same: one table, for Python and for the viewer's JavaScript."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kcontrol.runtime.journal import Record

STATIC = Path(__file__).parent / "static"

MEANINGS: dict[str, Any] = json.loads((STATIC / "meanings.json").read_text(encoding="utf-8"))


def rule(record: Record) -> str:
    """What decided, in a few words; empty for records that decide nothing."""
    fields, entry = record.fields, None
    if record.kind == "begin":
        entry = MEANINGS["events"].get(fields["event"])
    elif record.kind == "change" and fields["rule"]:
        entry = MEANINGS["rules"].get(fields["rule"], [fields["rule"]])
    elif record.kind == "change":
        entry = [note(fields["machine"], str(fields["source"]), str(fields["target"]))]
    return str(entry[0]) if entry else ""


def note(machine: str, source: str, target: str) -> str:
    """What the table of a machine says about a pair of states; empty for a pair that it does not list."""
    rows = MEANINGS["machines"][machine]["rows"]
    return next((str(row[2]) for row in rows if row[:2] == [source, target]), "")


def row_of(record: Record) -> str:
    """The row of the table that a move went by, with what it means; empty for records that are no move."""
    fields = record.fields
    if record.kind != "change":
        return ""
    source, target = str(fields["source"]), str(fields["target"])
    return f"{source} -> {target}: {note(fields['machine'], source, target)}"


def decided(record: Record, release: str = "") -> list[str]:
    """What stands behind a record, as far as there is any: the row of the table, the rule, and where Kafka has it."""
    row, why, where = row_of(record), rule(record), kafka_source(record, release)
    if row.endswith(f": {why}"):
        why = ""
    return [found for found in (row, f"rule: {why}" if why and row else why, where) if found]


def kafka_source(record: Record, release: str = "") -> str:
    """Where Kafka does what this record says, with the release; empty for what Kafka has no part in.

    It is said for the release of the run where the table has that, and otherwise for the one that the table is about.
    """
    section, key = _entry(record)
    for line, table in MEANINGS["earlier"].items():
        if f"{release}.".startswith(f"{line}.") and key in table[section]:
            return f"{table[section][key]} ({line})" if table[section][key] else ""
    found = _source(section, key)
    return f"{found} ({MEANINGS['release']})" if found else ""


def _entry(record: Record) -> tuple[str, str]:
    """The part of the table and the name under which it has a record's source."""
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
