"""Reads and checks recordings of real group coordinators, and converts recorded responses into those of kcontrol's coordinator.

`notebooks/recordings/groups.md` describes the fields of a recording. The field `answer` of a recorded request has its response;
ANSWERS has the class of this field for each API.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from kcontrol.cluster.coordinator_requests import REQUESTS
from kcontrol.core.errors import UserError
from kcontrol.core.model import TopicPartition
from kcontrol.group import events as e
from kcontrol.group.error_codes import ERRORS
from kcontrol.group.model import Member
from kcontrol.group.offsets_topic_records import encode
from kcontrol.journal.record_fields import Count, Hex, Int32, Int64, Partition
from kcontrol.recordings.recording import since

RECORDED_GROUP = "recorded group"
"""The `world` of a journal that was made from a recording of a group."""

FOLDER = "group"
"""The folder of a release's recordings of groups, and the beginning of their scenarios' names."""

Step = dict[str, Any]
if TYPE_CHECKING:
    Error: TypeAlias = str
    Api: TypeAlias = str
else:
    Error, Api = Literal[tuple(ERRORS)], Literal[tuple(REQUESTS)]
STOPPED, STARTED = "broker stopped", "broker started again"


# ---------------------------------------------------------------- the answers


class _Join(msgspec.Struct):
    error: Error
    generation: Int32
    protocol: str | None
    leader: str | None
    # The member id.
    member: str
    # Member id to metadata in hexadecimal; {} in the response to a follower.
    members: dict[str, Hex]

    def body(self) -> e.JoinResult:
        members = tuple((member, bytes.fromhex(metadata)) for member, metadata in self.members.items())
        return e.JoinResult(self.error, self.member, self.generation, self.protocol or "", self.leader or "", members)


class _Sync(msgspec.Struct):
    error: Error
    assignment: Hex = ""

    def body(self) -> e.SyncResult:
        return e.SyncResult(self.error, bytes.fromhex(self.assignment))


class _Heartbeat(msgspec.Struct):
    error: Error

    def body(self) -> e.HeartbeatResult:
        return e.HeartbeatResult(self.error)


class _Leave(msgspec.Struct):
    error: Error
    # One for each member of the request, in its order; [] if the release has only `error`.
    member_errors: list[Error] = []

    def body(self) -> e.LeaveResult:
        return e.LeaveResult(self.error, tuple(self.member_errors))


class _Errors(msgspec.Struct):
    errors: dict[Partition, Error]
    error: Error = "NONE"

    def body(self) -> e.ErrorsResult:
        return e.ErrorsResult({TopicPartition.parse(tp): error for tp, error in self.errors.items()}, self.error)


class _Deleted(msgspec.Struct):
    # Group id to error.
    errors: dict[str, Error]
    error: Error = "NONE"

    def body(self) -> e.ErrorsResult:
        return e.ErrorsResult(dict(self.errors), self.error)


class _Offset(msgspec.Struct):
    offset: Int64
    metadata: str | None
    error: Error


class _Fetch(msgspec.Struct):
    offsets: dict[Partition, _Offset]
    error: Error = "NONE"

    def body(self) -> e.FetchResult:
        each = self.offsets.items()
        found = {TopicPartition.parse(tp): e.FetchedOffset(held.offset, held.metadata or "", held.error) for tp, held in each}
        return e.FetchResult(self.error, found)


class _Describe(msgspec.Struct):
    error: Error
    state: str = ""
    type: str = ""
    protocol: str = ""
    # Member id to bytes in hexadecimal.
    metadata: dict[str, Hex] = {}
    assignment: dict[str, Hex] = {}

    def body(self) -> e.DescribeResult:
        members = tuple(
            (Member(id, "", "", 0, 0, ()), bytes.fromhex(self.metadata.get(id, "")), bytes.fromhex(self.assignment.get(id, "")))
            for id in {**self.metadata, **self.assignment}
        )
        return e.DescribeResult(self.error, self.state, self.type, self.protocol, members)


class _Listed(msgspec.Struct):
    group: str
    # The protocol type.
    type: str = ""
    state: str = ""


class _List(msgspec.Struct):
    error: Error
    groups: list[_Listed] = []

    def body(self) -> e.ListResult:
        return e.ListResult(self.error, tuple((each.group, each.type, each.state) for each in self.groups))


ANSWERS: dict[str, type[Any]] = {
    "JoinGroup": _Join, "SyncGroup": _Sync, "Heartbeat": _Heartbeat, "LeaveGroup": _Leave, "OffsetCommit": _Errors,
    "OffsetFetch": _Fetch, "DescribeGroups": _Describe, "OffsetDelete": _Errors, "DeleteGroups": _Deleted, "ListGroups": _List,
}  # fmt: skip


def response(step: Step) -> Any:
    """Raises KeyError without a response, msgspec.ValidationError for wrong fields."""
    return msgspec.convert(step["answer"], ANSWERS[step["api"]]).body()


def errors(step: Step) -> list[str]:
    """Of partitions, groups or members if they have codes, else of the response; [] without a response."""
    answer = step.get("answer")
    if answer is None:
        return []
    of_parts = [*answer.get("errors", {}).values(), *answer.get("member_errors", ())]
    # The codes of partitions, groups or members go before the one code of the answer.
    return of_parts or [answer.get("error", "NONE")]


# ---------------------------------------------------------------- the records of the log


class _Key(msgspec.Struct):
    kind: Literal["group", "offset"]
    version: Int32
    group: str
    topic: str = ""
    partition: Count = 0


class _Entry(msgspec.Struct):
    # The number of the record in the list `log`, from 1.
    n: Count
    key: _Key
    # None for a tombstone.
    value: dict[str, Any] | None


BYTES = ("subscription", "assignment")  # the fields of a member that are hexadecimal text in a recording


def record_bytes(entry: Mapping[str, Any]) -> tuple[bytes, bytes | None]:
    """Raises ValueError for an unknown version, KeyError for a missing field."""
    key, value = entry["key"], entry["value"]
    kind = key["kind"]
    raw = encode(f"{kind}_key", key["version"], key)
    if value is None:
        return raw, None
    if "members" in value:
        value = value | {"members": [member | {name: _raw(member[name]) for name in BYTES} for member in value["members"]]}
    return raw, encode(f"{kind}_value", value["version"], value)


def _raw(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


# ---------------------------------------------------------------- files


class _Request(msgspec.Struct):
    # The number of the entry in the exchange, from 1.
    n: Count
    # In ms since the start of the recording.
    at: Count
    # "A", "B" and so on for members, "-" and "X" for tools.
    client: str
    api: Api
    version: Int32
    # The fields that REQUESTS has for this API.
    request: dict[str, Any]
    # When the response was read, and the response; None without a response.
    answered_at: Count | None = None
    answer: dict[str, Any] | None = None


class _Event(msgspec.Struct):
    # The number of the entry in the exchange, from 1.
    n: Count
    # The begin in ms since the start of the recording; `done_at` is the end.
    at: Count
    event: Literal["broker stopped", "broker started again"]
    done_at: Count


class _Recording(msgspec.Struct):
    format_version: Literal[1]
    name: str
    release: str
    group: str
    # The broker's settings that differ from the default.
    broker: dict[str, int]
    # Each entry is checked as a _Request or an _Event.
    exchange: list[dict[str, Any]]
    # The group's records in the offsets topic.
    log: list[_Entry]
    title: str = ""


def is_of_group(content: bytes) -> bool:
    """Return whether a file looks like a recording of a group, valid or not: it has the words "exchange" and "format_version"."""
    return b'"exchange"' in content and b'"format_version"' in content


def parse(content: bytes, name: str) -> Step:
    """Return the recording, a dict, in the bytes of file `name`. Raises UserError if they are no valid recording of a group."""
    try:
        msgspec.json.decode(content, type=_Recording)
        found: Step = msgspec.json.decode(content)
        since(found["release"])
        at = 0
        for place, step in enumerate(found["exchange"], 1):
            _check_step(step, place, at)
            at = step["at"]
        for entry in found["log"]:
            _check_entry(entry)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        kind = "is not a recording of a group" if isinstance(error, msgspec.ValidationError) else "is broken JSON"
        raise UserError(f"{name} {kind}: {error}.") from None
    except ValueError as error:
        raise UserError(f"{name} is not a recording of a group: {error}.") from None
    return found


def _check_step(step: Step, place: int, earliest: int) -> None:
    """Check one entry of a recording's list `exchange`: a request with its response, or a stop or start of the broker.

    Raises ValueError unless the number is `place`, the time at or after `earliest` (of the entry before), and each field legal.
    """
    try:
        if "event" in step:
            end = msgspec.convert(step, _Event).done_at
        else:
            asked = msgspec.convert(step, _Request)
            msgspec.convert(asked.request, REQUESTS[asked.api])
            end = asked.at if asked.answered_at is None else asked.answered_at
            if (asked.answer is None) != (asked.answered_at is None):
                raise ValueError("it has an answer without its time, or a time without an answer")
            if asked.answer is not None:
                msgspec.convert(asked.answer, ANSWERS[asked.api])
        if step["n"] != place:
            raise ValueError(f"its number is {step['n']}")
        if not earliest <= step["at"] <= end:
            raise ValueError("its time is before that of the entry before it, or after that of its own answer")
    except ValueError as error:
        raise ValueError(f"entry {place} of the exchange: {error}") from None


def _check_entry(entry: Step) -> None:
    try:
        record_bytes(entry)
    except KeyError as error:
        raise ValueError(f"record {entry['n']} of the log has no field {error}") from None
    except (ValueError, TypeError, AttributeError, struct.error) as error:
        raise ValueError(f"record {entry['n']} of the log: {error}") from None


def scenario(recording: Mapping[str, Any]) -> str:
    """Return the name of a recording's scenario, as in "group/leader-leaves"."""
    return f"{FOLDER}/{recording['name']}"
