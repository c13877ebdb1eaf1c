"""Finds the journal record that last changed a group's generation, its leader, the owner of a partition, or an offset.

These values are read from the memory of the group's coordinator; a load by a new coordinator is also a change.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kcontrol.journal.journal import Record
from kcontrol.views import group_state

FORMS = '"generation of billing", "leader of group billing", "owner of t-0 in billing", "offset of billing in t-0"'
Held = dict[str, Any]
Fact = Callable[[Held], Any]


def owner(partition: str) -> Fact:
    """Return a function that takes a group as JSON and returns the id of the member that owns `partition`, or None."""

    def fact(held: Held) -> Any:
        members = held["members"].items()
        return next((id for id, member in members if partition in group_state.partitions(member["assignment"])), None)

    return fact


def committed(partition: str) -> Fact:
    """Of a group's offsets as JSON: (committed offset, base offset of the batch that stores it), or None."""

    def fact(held: Held) -> Any:
        stored = held["committed"].get(partition)
        return None if stored is None else (stored["value"]["offset"], stored["base_offset"])

    return fact


QUESTIONS: tuple[tuple[str, str, Callable[[dict[str, str]], Fact]], ...] = (
    # how it is asked                              field      what it asks of a group or of its offsets
    (r"generation of (?P<group>.+)", "groups", lambda said: lambda held: held["generation"]),
    (r"leader of group (?P<group>.+)", "groups", lambda said: lambda held: held["leader"]),
    (r"owner of (?P<partition>\S+) in (?P<group>.+)", "groups", lambda said: owner(said["partition"])),
    (r"offset of (?P<group>.+) in (?P<partition>\S+)", "offsets", lambda said: committed(said["partition"])),
)


def is_question(what: str) -> bool:
    """Such as "leader of group g", "generation of g", "owner of t-0 in g", "offset of g in t-0"."""
    return any(_matches(what))


def last_change(records: Iterable[Record], what: str) -> Record | None:
    """Return the journal record that last changed the value `what`, such as "generation of billing"; None if there is none."""
    said, field, fact = next((m.groupdict(), field, ask(m.groupdict())) for m, field, ask in _matches(what))
    held: dict[int, Any] = {}
    found = gone = None
    for record, value in _values(records, field, said["group"]):
        if record.kind == "stop":
            # The memory of a coordinator ends with its process, which changes neither the group nor the offset.
            gone = gone if held.pop(record.fields["broker"], None) is None else None
            continue
        node = record.id.node
        answer = None if value is None else fact(value)
        if answer == held.get(node):
            continue
        held[node] = answer
        found, gone = (record, gone) if answer is not None else (found, record)
    # If no coordinator has the group or the offset any more, it is the record that removed the group or the offset.
    return gone if gone and all(answer is None for answer in held.values()) else found


def _matches(what: str) -> Iterator[tuple[re.Match[str], str, Callable[[dict[str, str]], Fact]]]:
    for form, field, ask in QUESTIONS:
        if match := re.fullmatch(form, what, re.DOTALL):
            yield match, field, ask


def _values(records: Iterable[Record], field: str, group: str) -> Iterator[tuple[Record, Held | None]]:
    """Yield each journal record that changes a group, or the group's offsets, at a coordinator, with the new value as JSON.

    `field` is "groups" for the group, "offsets" for the offsets. The value is None if the record removes them, and for the
    end of a broker's process, a record `stop`.
    """
    for record in records:
        f = record.fields
        if record.kind == "stop":
            yield record, None
        if record.kind == "group" and field == "groups" and f["group_id"] == group:
            yield record, record.to_json().fields["group_metadata"]
        elif record.kind == "update" and f["context"] == "group" and f["field"] == field:
            put = record.to_json().fields["put"] or {}
            if group in put:
                yield record, put[group]
            elif f["clear"] or group in f["remove"]:
                yield record, None
