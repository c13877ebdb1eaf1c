"""Sentences about recordings of real brokers and coordinators.

They are about the beginning of a recording, the requests and events in it, and records that it lacks and that were inferred.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kcontrol.core.errors import listed

MARKS = {"record": " (inferred).", "time": " (its time is inferred)."}
"""The end of a sentence, by the field `inferred` of its record: the recording lacks the record, or its time."""


def begins(run: Mapping[str, Any]) -> str:
    """Return the sentence for the first record of a recording's journal, whose fields are `run`; "" for any other journal."""
    what = f"Kafka {run['release']}"
    if run["world"] == "recorded group":
        return f"A recording of a real coordinator begins: {what}, {run['scenario']}."
    if run["world"] == "recorded":
        return f"A recording of real brokers begins: {what}, brokers {listed(run['brokers'], 9)}, {run['scenario']}."
    return ""


def entry(do: Mapping[str, Any]) -> str:
    """Return an entry of a coordinator's recording as text, such as "A sends JoinGroup"; "" for a step of any other recording."""
    return str(do["event"]) if "event" in do else f"{do['client']} sends {do['api']}" if "api" in do else ""


def mark(fields: Mapping[str, Any]) -> str:
    """Return the end of the sentence about a record that the recording lacks, or whose time it lacks; "" for any other record."""
    return MARKS.get(fields["inferred"], MARKS["record"]) if "inferred" in fields else ""
