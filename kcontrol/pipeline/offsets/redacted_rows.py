"""Replaces names of the kinds in `--redact`, such as hosts, in the rows made from segments of `__consumer_offsets`.

Each name is replaced by its stable name, such as "topic-bdfghjkmnp", wherever it occurs. The field in which a text stands says
whether the text is a name.

The text that a consumer commits with an offset is replaced as a whole. The bytes of subscriptions and assignments are left out,
because any part of them may be a name; their topics stand in the columns `topics` and `partitions`, with stable names.
"""

import os
import re
from pathlib import Path
from typing import Any

from kcontrol.pipeline.offsets.segments import LOG_PARTITION, Row
from kcontrol.pipeline.redaction.stable_names import MEMBER_ID, Redaction

ROOT, KAFKAS = "segments", re.compile(r"\d{20}\.log")


def shown_path(path: Path, root: Path, redaction: Redaction) -> str:
    """As "segments/" and the path below `root`; stable names stand for names that are not Kafka's."""
    *folders, name = Path(os.path.relpath(path, root)).parts
    if "host" in redaction.kinds:
        folders = [part if LOG_PARTITION.fullmatch(part) else f"folder-{redaction.letters(part)}" for part in folders]
        name = name if KAFKAS.fullmatch(name) else f"file-{redaction.letters(name)}.log"
    return str(Path(ROOT, *folders, name))


def redacted(row: Row, redaction: Redaction) -> Row:
    """Return a row about a record of a segment file with stable names in place of the names that `redaction` replaces."""
    fields = row.fields
    if fields is None:
        return row
    found = {name: _field(name, value, redaction) for name, value in fields.items()}
    if members := fields.get("members"):
        found["members"] = [{name: _field(name, value, redaction) for name, value in member.items()} for member in members]
    return row._replace(fields=found)


def _field(name: str, value: Any, redaction: Redaction) -> Any:
    if not value:
        return value
    match name:
        case "group" | "group_id" | "client_id" | "group_instance_id":
            return redaction.stable("client", value)
        case "member_id" | "leader":
            return member_id(value, redaction)
        case "client_host":
            return "/" * value.startswith("/") + redaction.stable("host", value.removeprefix("/"))
        case "partition":
            return _partition(value, redaction)
        case "partitions":
            return [_partition(partition, redaction) for partition in value]
        case "topics":
            return [redaction.stable("topic", topic) for topic in value]
        case "metadata":
            return f"text-{redaction.letters(value)}"
        case "subscription" | "assignment":
            return None
    return value


def member_id(value: str, redaction: Redaction) -> str:
    """Return a member id in which a stable name replaces the client id or instance id before the UUID."""
    found = MEMBER_ID.fullmatch(value)
    return f"{redaction.stable('client', found[1])}-{found[2]}" if found else redaction.stable("client", value)


def _partition(partition: str, redaction: Redaction) -> str:
    topic, _, number = partition.rpartition("-")
    return f"{redaction.stable('topic', topic)}-{number}"
