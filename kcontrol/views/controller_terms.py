"""Functions that find the terms of controllers in a journal, with the reasons why each term began and ended.

A term is the time during which `/controller` has one value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kcontrol.core.znodes import CONTROLLER, CONTROLLER_EPOCH, MalformedZnode, decode_controller
from kcontrol.journal.journal import Record
from kcontrol.views.text import A_CLIENT

BY_CLIENT = A_CLIENT.lower()


class ControllerTerm(NamedTuple):
    """The time during which `/controller` has one value; `id` is the journal record that wrote the value."""

    id: str
    # None if the value cannot be decoded.
    broker: int | None
    # The value of `/controller_epoch` when the term begins.
    controller_epoch: int | None
    # The author of the value: "a client" or, for a broker, words such as "broker 2".
    begun_by: str
    # The cause in words, such as "the end of the session of broker 1"; None if the term has not ended.
    ended_by: str | None


def controller_terms(records: Iterable[Record]) -> list[ControllerTerm]:
    """Return the term of each controller: one ControllerTerm per value of `/controller`, in the order of the journal."""
    found: list[ControllerTerm] = []
    epoch: int | None = None
    for record in records:
        r = record.to_json() if record.kind in ("write", "close") else record
        if r.kind == "close" and CONTROLLER in r.fields["deleted"]:
            _end(found, f"the end of the session of broker {r.fields['broker']}")
        if r.kind != "write" or r.fields["error"] is not None:
            continue
        who = BY_CLIENT if r.id.broker is None else f"broker {r.id.broker}"
        texts = {op[1]: op[2] for op in r.fields["ops"] if op[0] in ("create", "set")}
        epoch = _number(texts[CONTROLLER_EPOCH]) if CONTROLLER_EPOCH in texts else epoch
        for op in r.fields["ops"]:
            if op[1] == CONTROLLER and op[0] in ("delete", "set"):
                _end(found, f"{who}, who {'deleted' if op[0] == 'delete' else 'rewrote'} it")
            if op[1] == CONTROLLER and op[0] in ("create", "set"):
                found.append(ControllerTerm(str(r.id), _named(op[2]), epoch, who, None))
    return found


def _end(found: list[ControllerTerm], how: str) -> None:
    if found and found[-1].ended_by is None:
        found[-1] = found[-1]._replace(ended_by=how)


def _number(text: Any) -> int | None:
    return int(text) if str(text).isdecimal() else None


def _named(text: str) -> int | None:
    try:
        return decode_controller(text.encode())
    except MalformedZnode:
        return None
