"""Broker logs as a run: the lines of group coordinators give back the rebalances and members that the journal's tables give.

The other party is the journal from which the lines were written: `log_lines.tsv`, whose messages are held against Kafka's
templates and real lines (`tests/views/test_kafka_words.py`). The reasons of rebalances are those of prepareRebalance's callers in
Kafka's GroupCoordinator.scala (2.1.0, 2.8.2, 3.4.0).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcontrol.lab.run import Run
from kcontrol.pipeline.log_journal import evidence
from kcontrol.pipeline.log_journal.log_line import Line
from tests.lab import group_runs
from tests.pipeline.comparison import differences, rows_of_pandas, rows_of_spark
from tests.pipeline.log_runs import Journals, journals_of, run_of_lines

PLAYS = (group_runs.join, group_runs.leave, group_runs.expiry, group_runs.coordinator_killed)
RELEASES = ("0.9", "2.8")
NO_REASON, NO_TIME = {"reason", "members"}, "end"


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Journals:
    """By release and play, a run and the run that was made from its log files."""
    labs = {f"{release}-{play.__name__}": play(release) for release in RELEASES for play in PLAYS}
    releases = {name: name.partition("-")[0] for name in labs}
    return journals_of(spark, tmp_path_factory.mktemp("logs of groups"), labs, releases)


def cells(run: Any, table: str, *columns: str) -> list[list[Any]]:
    return [list(row) for row in getattr(run.tables, table)()[list(columns)].astype("object").itertuples(index=False)]


@pytest.mark.spark
@pytest.mark.slow
def test_the_logs_give_back_the_rebalances(journals: Journals) -> None:
    """Each rebalance is there with its begin, generations and end, and in 2.8 with its reason and the names of its members."""
    same = ("group_id", "coordinator", "begin_ms", "from_generation", "to_generation")
    for name, (lab, run) in journals.items():
        more = ("reason", "members") if name.startswith("2.8") else ()
        assert cells(run, "rebalances", *same, *more) == cells(lab, "rebalances", *same, *more), name
        assert cells(run, "rebalances", "ended_in") == cells(lab, "rebalances", "ended_in"), name
        ours = run.tables.rebalances()
        marks = [set(str(inferred).split(", ")) for inferred in ours.inferred]
        assert [NO_TIME in mark for mark in marks] == ours.ended_in.fillna("").eq("Stable").tolist(), name
        if name.startswith("0.9"):
            assert all(mark >= NO_REASON for mark in marks), name


@pytest.mark.spark
@pytest.mark.slow
def test_the_logs_give_back_the_members_that_they_name(journals: Journals) -> None:
    """In 2.8 each member has its life; the id of a member whose second JoinGroup has no line is inferred. 0.9 names no member."""
    same = ("client_id", "member_id", "begin_ms", "first_generation", "last_generation")
    for name, (lab, run) in journals.items():
        assert cells(run, "member_lives", *same) == (cells(lab, "member_lives", *same) if name.startswith("2.8") else []), name
    lives = journals["2.8-join"][1].tables.member_lives()
    assert lives.set_index("client_id").inferred.fillna("").to_dict() == {"anna": "", "bert": "member_id", "cleo": ""}


@pytest.mark.spark
@pytest.mark.slow
def test_spark_and_pandas_agree_about_groups_of_logs(journals: Journals, tmp_path: Path, spark: Any) -> None:
    """The tables of groups that the pipeline writes have the cells of the run's own tables, with their evidence."""
    from kcontrol.lab.history import history_tables, log_evidence

    run = journals["2.8-coordinator_killed"][1]
    (tmp_path / "tables").mkdir()
    evidence.write_tables(spark, run.records, tmp_path / "tables")
    for name in ("rebalances", "member_lives"):
        spark.read.parquet(str(tmp_path / "tables" / name)).createOrReplaceTempView("written")
        table = log_evidence.with_evidence(history_tables.table(run.records, "logs", name), run.records, name)
        assert len(table)
        ours = rows_of_spark(spark, "written")
        assert list(differences(name, ours, rows_of_pandas(table), list(table.columns))) == []


# ---------------------------------------------------------------- single lines

ANNA, BERT = (f"{name}-1f6b2d7c-0001-4000-8000-0123456789ab" for name in ("anna", "bert"))


def run_of(*facts: tuple[str, dict[str, Any]], release: str = "2.8") -> Run:
    """Return the run of lines of broker 1 about the group billing, after the check that files of journals pass."""
    about = {"broker": 1, "group": "billing"}
    lines = [Line("server.log", n, 1000 * n, kind, about | values, 1) for n, (kind, values) in enumerate(facts, 1)]
    return run_of_lines(lines, release, [1])


def prepared(generation: int, reason: str | None = None) -> tuple[str, dict[str, Any]]:
    return "rebalance_prepared", {"generation": generation, "reason": reason}


def stabilized(generation: int, members: int | None = None) -> tuple[str, dict[str, Any]]:
    return "rebalance_stabilized", {"generation": generation, "members": members}


@pytest.mark.parametrize(
    ("text", "reason", "is_sure"),
    [
        (f"Adding new member {ANNA} with group instance id None", "a new member", True),
        (f"Updating metadata for member {ANNA}", "a member offers other protocols", False),
        (f"Updating metadata for member {ANNA} during Stable", "a member offers other protocols", True),
        (f"leader {ANNA} re-joining group during Stable", "the leader joins again", True),
        (f"Updating metadata for static member {ANNA} with instance id Some(a)", "a static member is back", True),
        (f"Removing member {ANNA} on LeaveGroup; client reason: not provided", "a member leaves", True),
        (f"removing member {ANNA} on heartbeat expiration", "session timeout", True),
        (f"Removing Set({ANNA}) on pending sync request expiration", "sync timeout", True),
        (f"error when storing group assignment during SyncGroup (member: {ANNA})", "the assignment was not stored", True),
        ("Error NOT_COORDINATOR when storing group assignment during SyncGroup (member: x)",
         "the assignment was not stored: NOT_COORDINATOR", True),
        ("words of a later release", "words of a later release", True),
    ],
)  # fmt: skip
def test_a_reason_has_the_words_of_the_journal(text: str, reason: str, is_sure: bool) -> None:
    """Each text of a reason is read; a text that stands for two reasons is marked, and an unknown text is kept."""
    (row,) = run_of(prepared(1, text)).tables.rebalances().itertuples()
    assert (row.reason, "reason" in row.inferred) == (reason, not is_sure)


@pytest.mark.parametrize(("release", "reason"), [("0.10.2", "a member leaves or fails"), ("1.1", "session timeout")])
def test_the_reason_of_a_line_without_one_is_that_of_the_line_before(release: str, reason: str) -> None:
    """The line about a failed member gives the reason once; before 0.11 the line has two meanings. Then the reason is unknown."""
    run = run_of(("member_failed", {"member": ANNA}), prepared(3), stabilized(4), prepared(4), release=release)
    assert cells(run, "rebalances", "reason", "inferred") == [
        [reason, "reason, members"], ["the log does not say why", "reason, members"],
    ]  # fmt: skip


def test_members_are_sure_if_lines_name_as_many_as_the_line_counts() -> None:
    """The members of a rebalance are marked as inferred if "Stabilized" counts others, or has no count."""
    new = prepared(0, f"Adding new member {ANNA} with group instance id None")
    marks = [cells(run_of(new, stabilized(1, count)), "rebalances", "members", "inferred")[0] for count in (1, 2, None)]
    assert [members for members, _ in marks] == [["anna"]] * 3
    assert ["members" in str(inferred) for _, inferred in marks] == [False, True, True]


def test_a_group_without_members_is_empty_and_then_dead() -> None:
    """The rebalance ends in Empty with the generation of the line, and the end of the group is a record."""
    run = run_of(
        prepared(0, f"Adding new member {ANNA}"), stabilized(1, 1), ("assignment_received", {"generation": 1}),
        prepared(1, f"removing member {ANNA} on LeaveGroup"), ("group_empty", {"generation": 2}),
        ("group_dead", {"generation": 2}),
    )  # fmt: skip
    table = run.tables.rebalances()
    assert cells(run, "rebalances", "ended_in", "to_generation", "members") == [["Stable", 1, ["anna"]], ["Empty", 2, []]]
    assert table.inferred.fillna("").tolist() == ["end", ""]
    assert [(r.fields["from"], r.fields["to"]) for r in run.records if r.kind == "group"][-1] == ("Empty", "Dead")


def test_a_restarted_coordinator_knows_no_members() -> None:
    """A second start of the broker ends the rebalance; the members of the first process are not those of the next."""
    started = ("broker_started", {})
    run = run_of(started, prepared(0, f"Adding new member {ANNA}"), started, prepared(1, f"Adding new member {BERT}"))
    table = run.tables.rebalances()
    assert table.ended_in.fillna("").tolist() == ["the coordinator has ended", ""]
    assert table.members.tolist() == [["anna"], ["bert"]]
