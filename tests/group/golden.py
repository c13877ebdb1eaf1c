"""Our coordinator against traces of real ones: the same requests at the same times, the same answers and records.

How they are compared is said in `notebooks/recordings/groups.md`: times in records are left out, members are sets, and an
answer must have been released by the same request, or by a timer within 25 ms, for each timer of the chain that led to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kcontrol.group import events as e
from kcontrol.group.offsets_topic_records import decode
from tests.conformance.group.coordinator import VERBS, Play, wanted
from tests.conformance.group.stage import Stage

APIS = {
    "JoinGroup": "join", "SyncGroup": "sync", "Heartbeat": "heartbeat", "LeaveGroup": "leave", "OffsetCommit": "commit",
    "OffsetFetch": "fetch", "OffsetDelete": "offset_delete", "DescribeGroups": "describe", "DeleteGroups": "delete",
}  # fmt: skip
SETTINGS = {
    "group.min.session.timeout.ms": "min_session", "offsets.topic.num.partitions": "partitions",
    "group.initial.rebalance.delay.ms": "initial_delay",
}  # fmt: skip
TIMES = ("commit_timestamp", "expire_timestamp", "current_state_timestamp")
SLACK_MS = 25
BY_TIMER = 0


def other(value: Any) -> Any:
    """Return another value of the type of `value`, with one leaf changed; a value without a leaf becomes a dict."""
    match value:
        case str():
            return "ILLEGAL_GENERATION" if value == "NONE" else "NONE" if value.isupper() else "00" if value != "00" else "01"
        case int():
            return value + 1_000
        case dict() if value:
            key = next(iter(value))
            return value | {key: other(value[key])}
        case [first, *rest]:
            return [other(first), *rest]
    return {"unknown": "00"}


class Replay:
    """One trace: its steps so far, our name of each member, and by which request each answer was released."""

    def __init__(self, trace: dict[str, Any]) -> None:
        self.trace = trace
        release = ".".join(trace["release"].split(".")[:3])
        config = {SETTINGS[key]: value for key, value in trace["broker"].items() if key in SETTINGS}
        self.play = Play({"given": {"config": config}}, release)
        self.every_ms = trace["broker"]["offsets.retention.check.interval.ms"]
        self.checked_ms = 0
        self.released: dict[str, int] = {}

    def run(self) -> Iterator[str]:
        """Every difference, in words."""
        for step in self.trace["exchange"]:
            self.advance(step["at"])
            if "event" in step:
                self.restart(step)
            else:
                self.send(step)
                self.note(step["n"])
        for step in self.trace["exchange"]:
            if "answer" in step:
                yield from self.compare(step)
        ours, theirs = self.log(), [self.record(entry["key"], entry["value"]) for entry in self.trace["log"]]
        for number, (one, other) in enumerate(zip(ours, theirs, strict=False), 1):
            if one != other:
                yield f"record {number}: expected {other}, ours {one}"
        if len(ours) != len(theirs):
            yield f"the log has {len(theirs)} records, ours {len(ours)}"

    def advance(self, at: int) -> None:
        """Let time pass; the broker looks for expired offsets every now and then."""
        while self.checked_ms + self.every_ms <= at:
            self.checked_ms += self.every_ms
            self.play.stage.advance(self.checked_ms)
            self.play.stage.handle(e.ExpireOffsets())
        self.play.stage.advance(at)
        self.note(BY_TIMER)

    def note(self, number: int) -> None:
        for label in self.play.stage.answers:
            self.released.setdefault(label, number)
        self.play.note_ids()

    def restart(self, step: dict[str, Any]) -> None:
        """A stopped broker forgets all but its log; when it is there again, that is loaded."""
        old = self.play.stage
        if step["event"] == "broker started again":
            stage = Stage(old.release, old.context.config, ())
            stage.logs, stage.written, stage.now, stage.answers = old.logs, old.written, step["done_at"], old.answers
            stage.handle(e.PartitionElected(0, 2))
            self.play.stage = stage
        else:
            old.driver.timers.clear()

    def send(self, step: dict[str, Any]) -> None:
        label = str(step["n"])
        args = {name: self.ours(value) for name, value in step["request"].items()}
        if step["api"] == "JoinGroup":
            args["protocols"] = [{"name": name, "meta": metadata} for name, metadata in args["protocols"]]
            args["require_known"] = step["version"] >= 4
            self.play.client = (step["client"].lower(), "/127.0.0.1")
        self.play.count = step["n"]
        self.play.verbs[label] = APIS[step["api"]]
        VERBS[APIS[step["api"]]](self.play, label, **args)

    # ---- names

    def names(self) -> dict[str, str]:
        """The trace's name of each member and ours; both made an id for the same JoinGroup."""
        asked = {str(s["n"]): s for s in self.trace["exchange"] if s.get("api") == "JoinGroup" and not s["request"]["member"]}
        return {asked[label]["answer"]["member"]: id for label, id in self.play.ids.items() if label in asked}

    def ours(self, value: Any) -> Any:
        return _renamed(value, self.names())

    def theirs(self, value: Any) -> Any:
        return _renamed(value, {ours: name for name, ours in self.names().items()})

    # ---- comparing

    def compare(self, step: dict[str, Any]) -> Iterator[str]:
        label, where = str(step["n"]), f"request {step['n']} ({step['api']})"
        found = self.play.stage.answers.get(label)
        if found is None:
            yield f"{where} was never answered"
            return
        ours = self.theirs(_shown(self.play, label))
        for key, value in step["answer"].items():
            expected = value if key == "members" else wanted(key, value)
            if ours.get(key) != expected:
                yield f"{where}: {key} should be {expected} and is {ours.get(key)}"
        number, at = self.released[label], step["answered_at"]
        if number == BY_TIMER:
            if abs(at - found.at) > SLACK_MS * found.timers:
                yield f"{where} should be answered at {at} and is at {found.at}, by a timer"
        else:
            by = next(other for other in self.trace["exchange"] if other["n"] == number)
            if not by["at"] <= at <= by["answered_at"] + SLACK_MS:
                yield f"{where} should be answered at {at} and is by request {number} at {by['at']}"

    def log(self) -> list[Any]:
        """What we have written, in the trace's form and names."""
        found = []
        for key, value in self.play.stage.written:
            kind = "group" if key[:2] == b"\0\2" else "offset"
            version, fields = decode(f"{kind}_key", key)
            plain = None
            if value is not None:
                plain = dict(zip(("version", "fields"), decode(f"{kind}_value", value), strict=True))
                plain = {"version": plain["version"], **plain["fields"]}
            found.append(self.record({"kind": kind, "version": version, **fields}, self.theirs(_hex(plain))))
        return found

    def record(self, key: dict[str, Any], value: dict[str, Any] | None) -> Any:
        """A record as it is compared: no times, members by id."""
        if value is None:
            return [key, None]
        kept = {name: item for name, item in value.items() if name not in TIMES}
        if "members" in kept:
            kept["members"] = {member["member_id"]: member for member in kept["members"]}
        return [key, kept]


def _shown(play: Play, label: str) -> dict[str, Any]:
    shown: dict[str, Any] = play.outcome(label)
    if play.verbs[label] == "join":
        shown = shown | {"members": {id: metadata.hex() for id, metadata in play.stage.answers[label].body.members}}
    return shown


def _hex(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {key: _hex(item) for key, item in value.items()}
    return [_hex(item) for item in value] if isinstance(value, list) else value


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {_renamed(key, names): _renamed(item, names) for key, item in value.items()}
    if isinstance(value, set):
        return {_renamed(item, names) for item in value}
    return [_renamed(item, names) for item in value] if isinstance(value, list) else value


def differences(trace: dict[str, Any]) -> list[str]:
    """What differs between a trace and what our coordinator does with its requests."""
    return list(Replay(trace).run())
