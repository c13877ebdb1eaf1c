"""The strips of records: what each replica has, where the high watermark is, and what was cut off."""

from __future__ import annotations

from typing import Any

from kcontrol.journal.fold import Fold
from kcontrol.journal.journal import Record, RecordId
from kcontrol.views.patches import Patches
from kcontrol.views.picture_state import Seen
from tests.views.support import Ask


def records_of(first: int, count: int, leader_epoch: int = 0) -> list[dict[str, Any]]:
    return [{"offset": offset, "leader_epoch": leader_epoch, "value": f"v{offset}"} for offset in range(first, first + count)]


def log(count: int, high_watermark: int, leader: int = 1, **more: Any) -> dict[str, Any]:
    """A replica's log of so many records, all of the first leader epoch."""
    epochs = [{"leader_epoch": 0, "start_offset": 0}]
    return {"records": records_of(0, count), "epochs": epochs, "high_watermark": high_watermark, "leader": leader} | more


STRIPS = """
    return viewer.strips(given).map(({ name, replicas, first, end, lost }) => ({
        name, first, end, lost: lost.length,
        replicas: replicas.map((one) => [one.broker, viewer.squares(one, first).map((s) => s.className.slice(10))]),
    }));
"""


def test_strips(ask: Ask) -> None:
    """Replicas come in the order of the assignment; squares say what is safe, what is not, what begins an epoch, what was cut."""
    cut = ["1.1.7", 2, records_of(2, 2, 1)]
    logs = {"1": {"t-0": log(2, 2)}, "2": {"t-0": log(3, 2, 2)}, "3": {"t-0": log(3, 3)}}
    scene = {
        "state": {"logs": logs, "nodes": {"1": {}, "2": {}}, "cuts": {"1": {"t-0": cut}}, "lost": {"t-0": [{}]}},
        "partitions": [{"topic": "t", "number": 0, "replicas": [2, 3, 1]}],
        "record": {"id": [1, 1, 7]},
    }
    (strip,) = ask(STRIPS, scene)
    assert (strip["name"], strip["first"], strip["end"], strip["lost"]) == ("t-0", 0, 4, 1)
    assert strip["replicas"] == [
        ["2", ["safe starts", "safe", "open line"]],
        ["3", ["safe starts", "safe", "safe"]],
        ["1", ["safe starts", "safe", "cut now line", "cut now"]],
    ]


def test_long_logs_show_their_ends(ask: Ask) -> None:
    """Of a long log the latest records are in sight, at the same offsets for each replica."""
    scene = {
        "state": {"logs": {"1": {"t-0": log(100, 100)}, "2": {"t-0": log(90, 80)}}, "nodes": {}, "cuts": {}, "lost": {}},
        "partitions": [],
    }  # fmt: skip
    (strip,) = ask(STRIPS, scene)
    assert (strip["first"], strip["end"]) == (76, 100)
    assert [len(squares) for _, squares in strip["replicas"]] == [24, 14]


def test_a_cut_is_seen_until_the_replica_appends(ask: Ask) -> None:
    """What was cut off is remembered with its records up to the next append of that replica, and lost records for good."""
    made = [
        (0, "run", {"data": True, "brokers": [1, 2]}),
        (0, "start", {"broker": 1, "incarnation": 1}),
        (0, "start", {"broker": 2, "incarnation": 1}),
        (1, "log_append", {"partition": "t-0", "records": records_of(0, 3), "now": {"leader": 1}}),
        (2, "log_append", {"partition": "t-0", "records": records_of(0, 2), "now": {"leader": 1}}),
        (1, "log_truncate", {"partition": "t-0", "offset": 1, "removed": records_of(1, 2), "now": {}}),
        (2, "log_append", {"partition": "t-0", "records": records_of(2, 1), "now": {}}),
        (0, "acknowledged", {"partition": "t-0", "offset": 2}),
        (0, "record_lost", {"partition": "t-0", "offset": 2}),
        (1, "log_append", {"partition": "t-0", "records": records_of(1, 1), "now": {}}),
        (0, "tail_lost", {"partition": "t-0", "broker": 2, "offset": 1, "removed": records_of(1, 2), "now": {}}),
    ]
    records = [Record(RecordId(who, 1, n), kind, None, n, fields) for n, (who, kind, fields) in enumerate(made)]
    body = """
        const timeline = viewer.timelineOf({ get: () => given.rows });
        return given.at.map((index) => {
            const { cuts, lost } = timeline.at(index).state;
            const found = Object.entries(cuts).flatMap(([broker, own]) => Object.entries(own).map(([tp, [id, , gone]]) => (
                [`${broker} ${tp}`, timeline.byId.get(id), gone.length])));
            return [found, (lost["t-0"] ?? []).length];
        });
    """
    said = ask(body, {"rows": sayless(records), "at": [4, 5, 6, 8, 9, 10, 6]})
    cut = ["1 t-0", 5, 2]
    assert said == [[[], 0], [[cut], 0], [[cut], 0], [[cut], 1], [[], 1], [[["2 t-0", 10, 2]], 1], [[cut], 0]]


def sayless(records: list[Record]) -> list[dict[str, Any]]:
    """Return rows of records without sentences."""
    fold, seen, patches, found = Fold(), Seen(), Patches(), []
    for r in records:
        fold.add(r)
        seen.add(r, fold)
        row = {"id": list(r.id), "kind": r.kind, "cause": None, "at_ms": r.at_ms, "fields": r.fields, "say": "", "weight": 1}
        found.append(row | patches.of(row, [*fold.noted, *seen.noted]))
    return found
