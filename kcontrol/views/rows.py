"""Records as the viewer's JavaScript gets them: the line of the journal, its sentence, and how much it shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kcontrol.runtime.journal import Record
from kcontrol.views import text


def row(record: Record) -> dict[str, Any]:
    """One record in JSON's own types; a session id, which may be too long for JavaScript, as ZooKeeper's shell writes it."""
    found = record.plain()
    fields = found.fields
    if (session := fields.get("session")) is not None:
        fields = fields | {"session": f"0x{session & 0xFFFF_FFFF_FFFF_FFFF:x}"}
    return {
        "id": list(found.id),
        "kind": found.kind,
        "cause": list(found.cause) if found.cause else None,
        "at_ms": found.at_ms,
        "fields": fields,
        "say": text.say(found),
        "weight": text.weight(found),
    }


def rows(records: Iterable[Record]) -> list[dict[str, Any]]:
    """The rows of these records, in their order."""
    return [row(record) for record in records]


def about_run(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The brokers, the release and the world that the first record names; nothing where it is no record of kind `run`."""
    first = found[0]["fields"] if found and found[0]["kind"] == "run" else {}
    return {"brokers": first.get("brokers", []), "release": str(first.get("release", "")), "world": str(first.get("world", ""))}
