"""Functions that return sentences about journals that were converted from recordings of real brokers and coordinators.

The sentences are about the beginning of a recording, its requests and events, and journal records that it lacks.
"""

from collections.abc import Mapping
from typing import Any

from kcontrol.core.errors import listed

MARKS = {"record": "inferred", "time": "its time is inferred"}
"""By the field `inferred` of a record, the words about it: the recording or the log lacks the record, or its time."""


def begins(run: Mapping[str, Any]) -> str:
    """The first sentence of a journal made from a recording or from broker logs, else ""."""
    what = f"Kafka {run['release']}"
    if run["world"] == "recorded group":
        return f"A recording of a real coordinator begins: {what}, {run['scenario']}."
    if run["world"] == "recorded":
        return f"A recording of real brokers begins: {what}, brokers {listed(run['brokers'], 9)}, {run['scenario']}."
    if run["world"] == "broker logs":
        return f"Broker logs begin: {what}, brokers {listed(run['brokers'], 9)}, times {run['zone']}."
    return ""


def entry(do: Mapping[str, Any]) -> str:
    """Such as "A sends JoinGroup", "broker stopped"; "" for neither a request nor an event."""
    # The client "-" is an admin client.
    if "event" in do:
        return str(do["event"])
    return f"{'an admin client' if do['client'] == '-' else do['client']} sends {do['api']}" if "api" in do else ""


def mark(fields: Mapping[str, Any]) -> str:
    """What is inferred, the log line, and what contradicts earlier lines: " (inferred)."."""
    inferred = str(fields.get("inferred", ""))
    # `inferred` is "record", "time" or the names of values.
    words = (MARKS.get(inferred, inferred and f"inferred: {inferred}"), fields.get("line"), fields.get("mismatch"))
    said = "; ".join(str(word) for word in words if word)
    return f" ({said})." if said else ""
