"""The inferred memory of a recorded coordinator beside the memory of our coordinator, for requests that need a timer's end.

Each case is played by our coordinator. Its responses and its log become a recording, and the journal of this recording is
compared with the run: the recording lacks all that is compared here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kcontrol import Lab
from kcontrol.journal import journal
from kcontrol.journal.journal import Record
from kcontrol.lab.run import Run
from kcontrol.recordings.groups import compare, from_journal
from kcontrol.recordings.groups.to_journal import to_journal
from kcontrol.recordings.to_journal import NOT_KNOWN

Step = dict[str, Any]
SUBSCRIPTION = "00000000000100066f7264657273ffffffff"
ASSIGNED = "00000000000100066f7264657273000000020000000000000001ffffffff"
TIMES = ("commit_timestamp", "expire_timestamp", "current_state_timestamp")
CHECK_MS, SLACK_MS = 400, 10
VERSIONS = {
    "0.9.0.1": {"JoinGroup": 0, "SyncGroup": 0, "Heartbeat": 0, "LeaveGroup": 0, "OffsetCommit": 2, "DescribeGroups": 0},
    "2.8.2": {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "LeaveGroup": 3, "OffsetCommit": 7, "DescribeGroups": 4},
}


def join(at: int, client: str, member: str, session: int, *, gets: str = "", rebalance: int = 1_000) -> Step:
    """Return a JoinGroup; `gets` is the name of the member id that the response gives to a new member."""
    request = {"member": member, "session": session, "type": "consumer", "protocols": [["range", SUBSCRIPTION]]}
    answer = {"error": "NONE", "generation": 1, "protocol": "range", "leader": "", "member": gets, "members": {}}
    about = {"at": at, "client": client, "api": "JoinGroup", "request": request, "rebalance": rebalance}
    return about | ({"answered_at": at, "answer": answer} if gets else {})


def sync(at: int, client: str, member: str, gen: int, *assigned: str) -> Step:
    request = {"member": member, "gen": gen, "assignment": dict.fromkeys(assigned, ASSIGNED)}
    return {"at": at, "client": client, "api": "SyncGroup", "request": request}


def of_member(at: int, client: str, api: str, member: str, gen: int, **fields: Any) -> Step:
    return {"at": at, "client": client, "api": api, "request": {"member": member, "gen": gen, **fields}}


def leave(at: int, client: str, member: str) -> Step:
    return {"at": at, "client": client, "api": "LeaveGroup", "request": {"members": [{"member": member}]}}


def describe(at: int) -> Step:
    return {"at": at, "client": "-", "api": "DescribeGroups", "request": {}}


CASES: dict[str, tuple[str, list[Step]]] = {
    "a heartbeat in a rebalance of 0.9 does not restart the session": ("0.9.0.1", [
        join(0, "A", "", 1_000, gets="M1"), sync(20, "A", "M1", 1, "M1"), join(300, "B", "", 3_000, gets="M2"),
        of_member(900, "A", "Heartbeat", "M1", 1), describe(1_500),
    ]),
    "a released SyncGroup restarts the session": ("0.9.0.1", [
        join(0, "A", "", 1_000, gets="M1"), sync(20, "A", "M1", 1, "M1"), join(100, "B", "", 1_000, gets="M2"),
        join(200, "A", "M1", 1_000), sync(500, "B", "M2", 2), join(1_900, "B", "M2", 1_000),
        of_member(2_000, "B", "OffsetCommit", "M2", 3, offsets={"t-0": 1}), describe(3_200),
    ]),
    "ILLEGAL_GENERATION without a group is no sign of a member": ("0.9.0.1", [
        join(0, "A", "", 1_000, gets="M1"), sync(20, "A", "M1", 1, "M1"),
        of_member(1_200, "A", "OffsetCommit", "M1", 1, offsets={"t-0": 1}), leave(1_300, "A", "M1"),
    ]),
    "an offset expires before a session ends": ("0.9.0.1", [
        of_member(10, "A", "OffsetCommit", "", -1, offsets={"t-0": 1}, retention_ms=100), join(100, "A", "", 900, gets="M1"),
        describe(1_500),
    ]),
    "a member of 2.8 sends no SyncGroup": ("2.8.2", [
        join(0, "A", "", 6_000, gets="M1"), join(10, "A", "M1", 6_000), join(20, "B", "", 6_000, gets="M2"),
        join(30, "B", "M2", 6_000), sync(800, "A", "M1", 1, "M1", "M2"), of_member(1_500, "B", "Heartbeat", "M2", 1),
        of_member(2_500, "A", "Heartbeat", "M1", 1), of_member(2_600, "B", "Heartbeat", "M2", 1),
    ]),
    "the last member of 2.8 leaves while an id is pending": ("2.8.2", [
        join(0, "A", "", 6_000, gets="M1"), join(10, "A", "M1", 6_000), sync(500, "A", "M1", 1, "M1"),
        join(600, "B", "", 300, gets="M2"), leave(700, "A", "M1"), describe(790),
    ]),
    "a periodic check of 2.8 removes an Empty group": ("2.8.2", [
        join(0, "A", "", 6_000, gets="M1"), join(10, "A", "M1", 6_000), sync(500, "A", "M1", 1, "M1"),
        leave(700, "A", "M1"), describe(1_500), join(1_600, "A", "", 6_000, gets="M2"), join(1_610, "A", "M2", 6_000),
        describe(2_500),
    ]),
    "the session of a member without a SyncGroup goes on when the assignment is stored": ("2.8.2", [
        join(0, "A", "", 6_000, gets="M1"), join(10, "A", "M1", 6_000, rebalance=3_000), join(20, "B", "", 900, gets="M2"),
        join(30, "B", "M2", 900, rebalance=3_000), sync(1_300, "A", "M1", 1, "M1", "M2"), describe(1_900),
        of_member(2_000, "A", "Heartbeat", "M1", 1),
    ]),
}  # fmt: skip


def played(release: str, steps: list[Step]) -> tuple[list[Record], Lab]:
    """Return the journal of the recording that our run of these requests makes, and this run."""
    broker = {"group.min.session.timeout.ms": 10, "offsets.topic.num.partitions": 1}
    broker |= {"offsets.retention.check.interval.ms": CHECK_MS}
    broker |= {"group.initial.rebalance.delay.ms": 300} if release == "2.8.2" else {}
    exchange = [_request(n, step, release) for n, step in enumerate(steps, 1)]
    about = {"format_version": 1, "name": "case", "release": release, "group": "g", "broker": broker}
    asked = about | {"exchange": exchange, "log": []}
    lab = Lab.play(asked)
    found = from_journal.of_journal(lab.records)
    found = compare.renamed(found, compare.member_names(asked, found))
    return to_journal(about | {"exchange": found["exchange"], "log": _relative(found["log"], begin_ms(lab))}), lab


def _request(n: int, step: Step, release: str) -> Step:
    with_timeout = release == "2.8.2" and "rebalance" in step
    request = {"group": "g", **step["request"]} | ({"rebalance": step["rebalance"]} if with_timeout else {})
    kept = {name: value for name, value in step.items() if name != "rebalance"}
    return kept | {"n": n, "version": VERSIONS[release][step["api"]], "request": request}


def _relative(value: Any, begin: int) -> Any:
    """Return the records of a log with times since the begin of the recording."""
    if isinstance(value, dict):
        return {name: item - begin if name in TIMES and item else _relative(item, begin) for name, item in value.items()}
    return [_relative(item, begin) for item in value] if isinstance(value, list) else value


def begin_ms(lab: Lab) -> int:
    first = next(record for record in lab.records if record.kind == "scenario")
    return first.at_ms - int(first.fields["do"]["at"])


def transitions(records: Sequence[Record], begin: int) -> list[tuple[int, str, str]]:
    return [(r.at_ms - begin, r.fields["from"], r.fields["to"]) for r in records if r.kind == "group"]


def causes(records: Sequence[Record]) -> list[str]:
    """Return for each transition "session" or "sync" if such a timer is the nearest in its chain of causes, else ""."""
    by_id = {record.id: record for record in records}
    found = []
    for record in (r for r in records if r.kind == "group"):
        chain = (by_id[each.id] for each in journal.why(records, record.id))
        nearest = next((each for each in chain if each.kind in ("fire_timer", "scenario")), record)
        timer = nearest.fields["timer"].split()[0] if nearest.kind == "fire_timer" else ""
        found.append(timer if timer in ("session", "sync") else "")
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_inferred_transitions_are_those_of_our_coordinator(name: str) -> None:
    """Each transition of the group is inferred, within 10 ms of its time, and the end of a session or sync phase is its cause."""
    recorded, lab = played(*CASES[name])
    ours, theirs = transitions(lab.records, begin_ms(lab)), transitions(recorded, 0)
    assert [row[1:] for row in theirs] == [row[1:] for row in ours]
    assert [mine for mine, other in zip(theirs, ours, strict=True) if abs(mine[0] - other[0]) > SLACK_MS] == []
    assert not [r for r in recorded if r.fields.get("rule") == NOT_KNOWN]
    timers = [(mine, other) for mine, other in zip(causes(recorded), causes(lab.records), strict=True) if mine != other]
    assert timers == []


@pytest.mark.parametrize("name", CASES)
def test_the_inferred_memory_is_that_of_our_coordinator(name: str) -> None:
    """At the end the coordinator has equal offsets, and as many timers of sessions."""
    recorded, lab = played(*CASES[name])
    mine, ours = Run(recorded, "recorded").tables, lab.tables
    assert mine.offsets().offset.tolist() == ours.offsets().offset.tolist()
    timers = [found.timers().timer.str.startswith("session").sum() for found in (mine, ours)]
    assert timers[0] == timers[1]
