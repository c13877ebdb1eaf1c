"""Records as the viewer's JavaScript gets them: the line of the journal, its sentence, and how much it shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kcontrol.runtime.journal import Record
from kcontrol.views import clock, text
from kcontrol.views.decisions import decision


def row(record: Record) -> dict[str, Any]:
    """One record in JSON's own types; a session id, which may be too long for JavaScript, as ZooKeeper's shell writes it.

    `decides` is there where the record decides something about a partition or the controller.
    """
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
    } | ({"decides": decided} if (decided := decision(found)) else {})


def rows(records: Iterable[Record]) -> list[dict[str, Any]]:
    """The rows of these records, in their order."""
    return [row(record) for record in records]


def about_run(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The brokers, the release, the world and its clock, as the first record names them; nothing where it is of another kind."""
    first = found[0]["fields"] if found and found[0]["kind"] == "run" else {}
    world = str(first.get("world", ""))
    about = {"brokers": first.get("brokers", []), "release": str(first.get("release", "")), "world": world}
    return about | {"clock": clock.of_world(world or "simulated")}
