"""Finds journal records by text: "2.1.58" is a record's id, "leader of t-0" the last record that set this leader."""

import re
from collections.abc import Iterable, Sequence

from kcontrol.core.errors import UserError
from kcontrol.core.model import TopicPartition
from kcontrol.core.znodes import CONTROLLER, state_path
from kcontrol.journal.journal import Record, RecordId
from kcontrol.lab.groups import changes
from kcontrol.views import text
from kcontrol.views.decisions import leadership

ID = re.compile(r"-?\d+(\.\d+)*")
FORMS = (
    f'"leader of t-0", "isr of t-0", "controller", {changes.FORMS}, the path of a znode, or the id of a record, such as "2.1.58"'
)


def position(records: Sequence[Record], to: object) -> int:
    """Return the position in the journal, from 0, of the record with the id `to` ("2.1.58") or the number `to` (-1 is the last).

    Raises UserError if there is no such record.
    """
    if isinstance(to, int) and not isinstance(to, bool):
        if -len(records) <= to < len(records):
            return to % len(records)
        raise UserError(f"There is no record number {to}; the journal has {len(records)}, from 0 on.")
    id = _id(to)
    for at, record in enumerate(records):
        if record.id == id:
            return at
    asked = text.clean(str(to), 100)
    raise UserError(f"The journal has no record {asked}; the last one is {records[-1].id}, and lab.journal() lists them all.")


def _id(to: object) -> RecordId:
    parts = to.split(".") if isinstance(to, str) else to
    try:
        node, incarnation, seq = map(int, parts)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise UserError(
            f'{text.clean(repr(to), 100)} is not a record: give its number in the journal, or its id, such as "2.1.58".'
        ) from None
    return RecordId(node, incarnation, seq)


def record(records: Sequence[Record], what: object) -> Record:
    """Return the journal record that `what` names: an id such as "2.1.58", a position, or a fact such as "leader of t-0".

    Raises UserError if there is no such record.
    """
    if not isinstance(what, str) or ID.fullmatch(what):
        return records[position(records, what)]
    # A fact names the last record that changed it.
    field, _, partition = what.partition(" of ")
    if changes.is_question(what):
        found = changes.last_change(records, what)
    elif field in ("leader", "isr") and partition:
        found = _last_change(records, partition, field)
    elif what == "controller" or what.startswith("/"):
        path = CONTROLLER if what == "controller" else what
        found = next((r for r in map(Record.to_json, reversed(records)) if _touches(r, path)), None)
    else:
        raise UserError(f"{text.clean(repr(what), 100)} is not a subject of the journal: ask about {FORMS}.")
    if found is None:
        raise UserError(
            f"The journal has no record about {text.clean(repr(what), 100)} so far: check its names, or ask about {FORMS}."
        )
    return found


def _last_change(records: Iterable[Record], partition: str, field: str) -> Record | None:
    """Return the journal record that last changed the `field` "leader" or "isr" of a partition; None if there is none."""
    found, held = None, None
    for r in (record.to_json() for record in records if record.kind in ("change", "write")):
        stored = leadership(r, partition)
        if stored is not None and stored.get(field) != held:
            found, held = r, stored.get(field)
    return found


def _touches(r: Record, path: str) -> bool:
    f = r.fields
    if r.kind == "write" and f["error"] is None:
        return any(op[1] == path for op in f["ops"])
    if r.kind == "change" and f["write"]:
        return state_path(TopicPartition.parse(f["subject"].partition("@")[0])) == path
    return r.kind == "close" and path in f["deleted"]
