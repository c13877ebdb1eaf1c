"""Converts a journal into the format of a recorded group coordinator, so that a run can be compared with a recording.

The main part of this format is `exchange`: a numbered list of requests with their responses, and of stops and starts
of the broker. A request also has `released_by`, the number of the entry whose arrival caused the response, and
`timers`, how many fired timers are among the causes of the response.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kcontrol.core.errors import UserError
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.group.offsets_topic_records import decode
from kcontrol.journal import journal
from kcontrol.journal.journal import Record
from kcontrol.recordings.groups.recording import BYTES, FOLDER, Step

Body = dict[str, Any]
_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")
GROUP_KEY = 2
"""The first version of a group's key; lower versions are those of an offset's key. Source: readMessageKey (0.9, 2.8)."""


def is_of_group(records: Sequence[Record]) -> bool:
    """Whether the journal was made from a recording of a group, or by a run that has played one."""
    return any(record.kind == "scenario" and {"api", "event"} & record.fields["do"].keys() for record in records)


def of_journal(records: Sequence[Record]) -> Step:
    """Raises UserError for a run that has played no recording of a group."""
    if not is_of_group(records):
        raise UserError("This run plays no recording of a group: make a run with Lab.play(recording).")
    plain = [record.to_json() for record in records]
    run = plain[0].fields
    name = str(run.get("scenario") or "").removeprefix(f"{FOLDER}/")
    about = {"release": run["release"], "name": name, "group": run.get("group"), "broker": run.get("config", {})}
    return about | {"exchange": _exchange(plain), "log": list(_log(plain))}


def bytes_of(text: str) -> bytes:
    r"""Return the bytes that a journal stores as `text`: UTF-8, with an escape such as `\xff` for each byte that is not UTF-8."""
    return _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), text.encode())


# ---------------------------------------------------------------- the exchange


def _exchange(records: list[Record]) -> list[Step]:
    places = [at for at, record in enumerate(records) if record.kind == "scenario"]
    responses = {record.fields["correlation_id"]: record for record in records if record.kind == "respond"}
    first = records[places[0]]
    begin_ms = first.at_ms - first.fields["do"]["at"]
    found = []
    for place, end in zip(places, [*places[1:], len(records)], strict=True):
        step = {"n": records[place].fields["step"], **records[place].fields["do"]}
        asked = next((r.fields["event"] for r in records[place:end] if _is_request(r)), None)
        answer = responses.get(asked["correlation_id"]) if asked and "api" in step else None
        if answer is not None:
            step |= {"answered_at": answer.at_ms - begin_ms, "answer": ANSWERS[step["api"]](answer.fields["body"])}
            step |= _release(records, places, answer)
        found.append(step)
    return found


def _is_request(record: Record) -> bool:
    return record.kind == "enqueue" and "correlation_id" in record.fields["event"] and "timestamp_ms" in record.fields["event"]


def _release(records: list[Record], places: list[int], answer: Record) -> Step:
    """{"released_by": 3, "timers": 1}: entry 3 caused the response, after one timer."""
    # There is one `scenario` record for each recorded entry that the run has repeated.
    chain = list(journal.why(records, answer.id))
    root = next(at for at, record in enumerate(records) if record.id == chain[-1].id)
    entry = records[places[max(0, bisect_right(places, root) - 1)]]
    return {"released_by": entry.fields["step"], "timers": sum(record.kind == "fire_timer" for record in chain)}


def _join(body: Body) -> Body:
    members = {id: bytes_of(metadata).hex() for id, metadata in body["members"]}
    kept = {name: body[name] for name in ("error", "generation", "protocol", "leader")}
    return kept | {"member": body["member_id"], "members": members}


def _fetch(body: Body) -> Body:
    each = {tp: {name: held[name] for name in ("offset", "metadata", "error")} for tp, held in body["offsets"].items()}
    return {"error": body["error"], "offsets": each}


def _describe(body: Body) -> Body:
    kept = {"error": body["error"], "state": body["state"], "type": body["protocol_type"], "protocol": body["protocol"]}
    places = {"metadata": 1, "assignment": 2}
    parts = {name: {each[0]["member_id"]: bytes_of(each[at]).hex() for each in body["members"]} for name, at in places.items()}
    return kept | parts


ANSWERS: dict[str, Callable[[Body], Body]] = {
    "JoinGroup": _join,
    "SyncGroup": lambda body: {"error": body["error"], "assignment": bytes_of(body["assignment"]).hex()},
    "Heartbeat": lambda body: {"error": body["error"]},
    "LeaveGroup": lambda body: {"error": body["error"], "member_errors": body["members"]},
    "OffsetCommit": lambda body: {"error": body["error"], "errors": body["errors"]},
    "OffsetFetch": _fetch,
    "DescribeGroups": _describe,
    "OffsetDelete": lambda body: {"error": body["error"], "errors": body["errors"]},
    "DeleteGroups": lambda body: {"error": body["error"], "errors": body["errors"]},
    "ListGroups": lambda body: {
        "error": body["error"],
        "groups": [dict(zip(("group", "type", "state"), each, strict=True)) for each in body["groups"]],
    },
}  # fmt: skip


# ---------------------------------------------------------------- the log


def _log(records: list[Record]) -> Iterator[Step]:
    """Yield the records that were appended to the group's partition of the offsets topic, numbered by `n` from 1."""
    n = 0
    for record in records:
        for key, value in _appended(record):
            n += 1
            yield {"n": n, **log_entry(key, value)}


def _appended(record: Record) -> Iterator[tuple[bytes, bytes | None]]:
    if record.kind == "offsets_append":
        for key, value in record.fields["batch"]["records"]:
            yield bytes_of(key), None if value is None else bytes_of(value)
    elif record.kind == "log_append" and record.fields["partition"].startswith(f"{OFFSETS_TOPIC}-"):
        # A record without a key, which a producer has sent, is no entry: no coordinator writes one.
        for entry in (each for each in record.fields["records"] if "key" in each):
            yield bytes.fromhex(entry["key"]), None if entry["data"] is None else bytes.fromhex(entry["data"])


def log_entry(key: bytes, value: bytes | None) -> Step:
    """Raises ValueError for bytes that are no record of the offsets topic."""
    kind = "group" if int.from_bytes(key[:2]) >= GROUP_KEY else "offset"
    version, fields = decode(f"{kind}_key", key)
    found: Step = {"key": {"kind": kind, "version": version, **fields}, "value": None}
    if value is not None:
        version, fields = decode(f"{kind}_value", value)
        members = {"members": [_member(member) for member in fields["members"]]} if kind == "group" else {}
        found["value"] = {"version": version, **fields, **members}
    return found


def _member(member: Step) -> Step:
    return {name: value.hex() if name in BYTES and value is not None else value for name, value in member.items()}
