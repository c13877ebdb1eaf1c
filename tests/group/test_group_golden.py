"""Our coordinator against traces of real brokers of 0.9.0.1 and 2.8.2."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.group.golden import TIMES, Replay, differences, other
from tests.originals import notice
from tests.parts import ROOT

RECORDINGS = ROOT / "notebooks" / "recordings"
NAMES = sorted(path.relative_to(RECORDINGS).with_suffix("").as_posix() for path in RECORDINGS.glob("*/group/*.json"))


def trace(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDINGS / f"{name}.json").read_text())
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_of_a_real_coordinator_is_met(name: str) -> None:
    """The same requests at the same times get the same answers, released by the same request or timer, and equal records."""
    assert differences(trace(name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_answer_and_record_of_a_trace_matters(name: str) -> None:
    """A trace is not met if a field of an answer or record or the time of a parked answer differs, or if a record is missing."""
    original = trace(name)
    replay = Replay(original)
    list(replay.run())
    for index, step in enumerate(original["exchange"]):
        for key in step.get("answer", ()):
            if (step["api"], key) == ("JoinGroup", "member"):
                continue  # that is where the names of members come from
            changed = copy.deepcopy(original)
            changed["exchange"][index]["answer"][key] = other(step["answer"][key])
            assert differences(changed), f"request {step['n']} with another {key}"
        if "answer" in step and replay.released[str(step["n"])] != step["n"]:
            changed = copy.deepcopy(original)
            changed["exchange"][index]["answered_at"] += 30_000
            assert differences(changed), f"request {step['n']} answered at another time"
    for index, record in enumerate(original["log"]):
        changed = copy.deepcopy(original)
        del changed["log"][index]
        assert differences(changed), f"without record {index + 1}"
        for key, value in (record["value"] or {}).items():
            if key in TIMES or value == []:
                continue  # times in records are not compared, and an Empty group has no members
            changed = copy.deepcopy(original)
            changed["log"][index]["value"][key] = other(value)
            assert differences(changed), f"record {index + 1} with another {key}"


@pytest.mark.shared
def test_each_copied_trace_equals_its_original(shared: Path) -> None:
    """Each copied trace that differs from its original is a warning with the command that copies it."""
    originals = shared / "golden" / "group"
    here = {RECORDINGS / f"{name}.json": originals / f"{name.replace('/group/', '-')}.json" for name in NAMES}
    there = (path for path in originals.glob("*.json") if path not in here.values())
    missing = {RECORDINGS / f"{path.stem.replace('-', '/group/', 1)}.json": path for path in there}
    notice(here | missing)


def deletion(error: str) -> dict[str, Any]:
    """Return a trace of one offset that is committed, deleted and fetched; `error` is what deleting it is answered."""
    key = {"group": "g", "topic": "orders", "partition": 0}
    asked: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
        ("OffsetCommit", {"member": "", "gen": -1, "offsets": {"orders-0": 5}}, {"errors": {"orders-0": "NONE"}}),
        ("OffsetDelete", {"partitions": ["orders-0"]}, {"error": "NONE", "errors": {"orders-0": error}}),
        ("OffsetFetch", {"partitions": ["orders-0"]}, {"offsets": {"orders-0": {"offset": -1, "metadata": "", "error": "NONE"}}}),
    )
    exchange = [
        {"n": n, "at": n, "answered_at": n, "client": "X", "api": api, "version": 0, "request": {**request, "group": "g"},
         "answer": answer}
        for n, (api, request, answer) in enumerate(asked, 1)
    ]  # fmt: skip
    value = {"version": 3, "offset": 5, "leader_epoch": -1, "metadata": ""}
    log = [{"key": {"kind": "offset", "version": 1, **key}, "value": found} for found in (value, None)]
    broker = {"offsets.topic.num.partitions": 1, "offsets.retention.check.interval.ms": 600_000}
    return {"release": "2.8.2", "group": "g", "broker": broker, "exchange": exchange, "log": log}


@pytest.mark.parametrize(("error", "count"), [("NONE", 0), ("GROUP_SUBSCRIBED_TO_TOPIC", 1)])
def test_a_trace_may_delete_offsets(error: str, count: int) -> None:
    """OffsetDelete is sent, its answer and tombstone are compared, and another error for the partition is one difference."""
    assert len(differences(deletion(error))) == count
