"""Functions that return sentences about journals that were converted from recordings of real brokers and coordinators.

The sentences are about the beginning of a recording, its requests and events, and journal records that it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kcontrol.core.errors import listed

MARKS = {"record": "inferred", "time": "its time is inferred"}
"""By the field `inferred` of a record, the words about it: the recording or the log lacks the record, or its time."""


def begins(run: Mapping[str, Any]) -> str:
    """Return the sentence for the first record of a journal of a recording or of broker logs, such as "Broker logs begin: ...".

    The sentence has the release and, by what was recorded, the scenario, the brokers or the time zone. `run` has the record's
    fields. Return "" for the journal of any other run.
    """
    what = f"Kafka {run['release']}"
    if run["world"] == "recorded group":
        return f"A recording of a real coordinator begins: {what}, {run['scenario']}."
    if run["world"] == "recorded":
        return f"A recording of real brokers begins: {what}, brokers {listed(run['brokers'], 9)}, {run['scenario']}."
    if run["world"] == "logs":
        return f"Broker logs begin: {what}, brokers {listed(run['brokers'], 9)}, times {run['zone']}."
    return ""


def entry(do: Mapping[str, Any]) -> str:
    """Return a step of a recorded group coordinator as text: the name of its event, or its request, as "A sends JoinGroup".

    `do` has the fields of the step. Return "" if it has neither an `event` nor an `api`, as in recordings of brokers.
    """
    return str(do["event"]) if "event" in do else f"{do['client']} sends {do['api']}" if "api" in do else ""


def mark(fields: Mapping[str, Any]) -> str:
    """Return the end of a journal record's sentence: what is inferred, the line of the log, and why it does not fit; else "".

    The field `inferred` is "record" or "time" for a whole record or its time, else the names of values. `line` is the place of
    the line that the record was made from. `mismatch` says why its transition contradicts the state machine or an earlier line.
    A field that is missing adds no text.
    """
    inferred = str(fields.get("inferred", ""))
    words = (MARKS.get(inferred, inferred and f"inferred: {inferred}"), fields.get("line"), fields.get("mismatch"))
    said = "; ".join(str(word) for word in words if word)
    return f" ({said})." if said else ""
