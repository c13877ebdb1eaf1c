"""Broker logs as a run: the lines of a controller give back the reassignments that the journal's table gives.

The other party is the journal from which the lines were written: `log_lines.tsv`, whose messages are held against Kafka's
templates and real lines (`tests/views/test_kafka_words.py`). The lines of single tests are those of KafkaController.scala (2.3).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcontrol import Lab
from kcontrol.pipeline.log_journal.log_line import Line
from tests.pipeline.log_runs import journals_of, run_of_lines

RELEASES = ("0.9", "1.1", "2.8")


@pytest.mark.spark
@pytest.mark.slow
def test_the_logs_give_back_the_reassignments(tmp_path: Path, spark: Any) -> None:
    """Each reassignment has its target, and its end if the logs have two lines about it, or one and no replica is added."""
    # Up to 2.3 no line of ours has the request, nor the second line about a reassignment that only adds replicas.
    labs = {}
    for release in RELEASES:
        labs[release] = Lab(release=release, brokers=4, topics={"t": [[1, 2], [2, 3]]}, runs=None).run()
        for targets in ({"t-0": [3, 4]}, {"t-1": [3, 2, 1]}, {"t-0": [3]}):
            labs[release].reassign(targets).run()
    for release, (lab, run) in journals_of(spark, tmp_path, labs, {release: release for release in labs}).items():
        ours, theirs = (owner.tables.reassignments() for owner in (run, lab))
        cells = [[(row.partition, list(row.target)) for row in table.itertuples()] for table in (ours, theirs)]
        assert cells[0] == cells[1] == [("t-0", [3, 4]), ("t-1", [3, 2, 1]), ("t-0", [3])], release
        has_line = release == "2.8"
        assert ours.end_n.notna().tolist() == [True, has_line, True], release
        assert (ours.begin_ms.to_numpy() >= theirs.begin_ms.to_numpy()).all(), release
        marks = ["", "", ""] if has_line else ["record, end", "record", "record, end"]
        assert ours.inferred.fillna("").tolist() == marks, release


# ---------------------------------------------------------------- single lines

ABOUT = {"controller": 1, "topic": "t", "partition": 0}


def run_of(release: str, *facts: tuple[str, dict[str, Any]]) -> Any:
    """Return the table of reassignments that these lines of controller 1 about t-0 show; its replicas were 1 and 2 before."""
    known = ("partitions_added", {"assignment": {"t-0": [1, 2]}})
    lines = [Line("controller.log", n, 1000 * n, kind, ABOUT | more, 1) for n, (kind, more) in enumerate((known, *facts), 1)]
    table = run_of_lines(lines, release, [1, 2, 3]).tables.reassignments()
    return [(list(row.target), row.begin_ms, row.end_ms, row.inferred) for row in table.fillna({"inferred": ""}).itertuples()]


def updated(*replicas: int) -> tuple[str, dict[str, Any]]:
    return "reassign_assignment_updated", {"replicas": list(replicas)}


def test_lines_of_kafka_have_the_request_and_its_removal() -> None:
    """With "Handling reassignment" and "Removed partition" only the time of the request is inferred."""
    started, removed = ("reassign_started", {"replicas": [2, 3]}), ("reassign_removed", {})
    assert run_of("2.3", started, updated(2, 3, 1), updated(2, 3), removed) == [([2, 3], 2000, 5000, "time")]
    more = ("reassign_started", {"replicas": [1, 2, 3]})
    assert run_of("2.3", more, updated(1, 2, 3), updated(1, 2, 3)) == [([1, 2, 3], 2000, 4000, "time, end")]


def test_a_reassignment_without_an_end_goes_on() -> None:
    """Without the second line the target is inferred, and the row has no end."""
    ((target, begin_ms, end_ms, inferred),) = run_of("2.8", ("reassign_updated", {"assignment": [2, 3, 1]}))
    assert (target, begin_ms, inferred) == ([2, 3, 1], 2000, "target")
    assert str(end_ms) == "<NA>"


def test_a_last_line_alone_shows_a_reassignment_with_both_ends_inferred() -> None:
    """If all target replicas are in the ISR, or the logs begin too late, the last line is the only one."""
    assert run_of("1.1", updated(2)) == [([2], 2000, 2000, "record, end")]
    assert run_of("1.1", updated(2, 1)) == [([2, 1], 2000, 2000, "record, end")]
    assert run_of("2.8", ("reassign_updated", {"assignment": [2]})) == [([2], 2000, 2000, "record")]
