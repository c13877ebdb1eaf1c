"""Broker logs as a run: the lines of eight brokers give back what the journal of the run has, in pandas and on Spark.

The other party is the journal from which the lines were written: `log_lines.tsv`, whose messages are held against Kafka's
templates and real lines (`tests/views/test_kafka_words.py`).
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.lab.run import Run
from kcontrol.pipeline.log_journal import evidence
from kcontrol.pipeline.log_journal.log_line import Line
from kcontrol.pipeline.log_journal.releases import release_of
from tests.pipeline.comparison import differences, rows_of_pandas, rows_of_spark
from tests.pipeline.log_runs import Journals, journals_of, run_of_lines

RELEASES = ("0.8.1", "0.9", "2.8")
REFUSED = "unclean election refused"
LOGGED_SINCE_1_1 = "it has no leadership"


def eventful(release: str) -> Lab:
    """Return a run of eight brokers with kills, a shutdown, a failover, a deletion and a refused unclean election."""
    config = {} if release == "0.8.1" else {"unclean.leader.election.enable": False}  # 0.8.1 has no such setting
    topics = {"t": [[2, 3], [3, 1, 2], [4]], "gone": [[5, 6], [6, 7]], "u": [[7, 8]]}
    lab = Lab(brokers=8, release=release, topics=topics, runs=None, config=config).run()
    for action in [("kill", 2), ("kill", 4), ("start", 2), ("start", 4), ("terminate", 3), ("kill", 1)]:
        lab.step(action).run()
    lab.delete_topic("gone").run()
    for action in [("kill", 7), ("kill", 8), ("start", 7), ("start", 8), ("start", 3), ("start", 1)]:
        lab.step(action).run()
    return lab


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Journals:
    """By release, a run and the run that was made from its log files; the lines show the release."""
    labs = {release: eventful(release) for release in RELEASES}
    found = journals_of(spark, tmp_path_factory.mktemp("logs of brokers"), labs)
    assert [run.records[0].fields["release"] for _, run in found.values()] == list(RELEASES)
    return found


def rows(table: pd.DataFrame, *columns: str) -> list[tuple[str, ...]]:
    return [tuple(map(str, row)) for row in table[list(columns)].astype("object").itertuples(index=False)]


MOVES = ("controller", "machine", "partition", "replica", "source", "target")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_the_logs_give_back_the_transitions(journals: Journals, release: str) -> None:
    """Each transition of each controller is there, in order, but for those that the release does not log."""
    lab, run = journals[release]
    theirs = lab.tables.transitions()
    if release != "2.8":
        theirs = theirs[theirs.rule.fillna("") != LOGGED_SINCE_1_1]
    ours = run.tables.transitions()
    assert rows(ours, *MOVES) == rows(theirs, *MOVES) and len(ours) > 50
    assert ours.mismatch.isna().all() and ours.inferred.isna().all()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_the_logs_give_back_the_leaderships(journals: Journals, release: str) -> None:
    """Each change of a leader is there; 0.8.1 logs the leader epochs of offline elections only, and the others are inferred."""
    lab, run = journals[release]
    ours = run.tables.leaderships()
    columns = ("partition", "leader", "leader_epoch", "controller_epoch")
    assert sorted(rows(ours, *columns)) == sorted(rows(lab.tables.leaderships(), *columns))
    inferred = ours[ours.inferred.notna()]
    assert set(inferred.inferred) == ({"leader_epoch"} if release == "0.8.1" else set())
    elected = run.tables.elections().query("kind == 'clean' or kind == 'unclean'")
    others = ours[(ours.leader >= 0) & ~ours.record.isin(elected.record)]
    assert inferred.record.tolist() == (others.record.tolist() if release == "0.8.1" else [])


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_the_logs_give_back_the_offline_windows(journals: Journals, release: str) -> None:
    """Each window is there with its reason; its begin is inferred, and later than the kill, which no line shows."""
    lab, run = journals[release]
    theirs, ours = (owner.tables.offline_windows().sort_values(["partition", "begin_ms"]) for owner in (lab, run))
    columns = ("partition", "led_before", "led_after", "reason")
    assert rows(ours, *columns) == rows(theirs, *columns)
    assert set(ours.reason) == {"0.8.1": {"death"}, "0.9": {"death", REFUSED}, "2.8": {"death", REFUSED, "deletion"}}[release]
    killed = (ours.reason != "deletion").to_numpy()
    assert set(ours.inferred[killed]) == {"record"}
    assert (ours.begin_ms.to_numpy()[killed] > theirs.begin_ms.to_numpy()[killed]).all()
    assert ours.end_ms[killed].tolist() == theirs.end_ms[killed].tolist()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_the_logs_give_back_processes_and_controllers(journals: Journals, release: str) -> None:
    """Each term of a controller and each life of a broker is there, with its kind of end."""
    lab, run = journals[release]
    for name, columns in (
        ("tenures", ("broker", "controller_epoch", "ended_by")),
        ("broker_lives", ("broker", "incarnation", "ended_by")),
    ):
        assert sorted(rows(getattr(run.tables, name)(), *columns)) == sorted(rows(getattr(lab.tables, name)(), *columns)), name


@pytest.mark.spark
@pytest.mark.slow
def test_spark_and_pandas_agree_about_logs(journals: Journals, tmp_path: Path, spark: Any) -> None:
    """Each table of runs that the pipeline writes for logs has the cells of the run's own table, with its evidence."""
    from kcontrol.lab.history import history_tables, log_evidence

    run = journals["0.8.1"][1]
    (tmp_path / "tables").mkdir()
    for name in evidence.write_tables(spark, run.records, tmp_path / "tables"):
        spark.read.parquet(str(tmp_path / "tables" / name)).createOrReplaceTempView("written")
        ours = rows_of_spark(spark, "written")
        table = history_tables.table(run.records, "logs", name)
        table = table if name == "journal" else log_evidence.with_evidence(table, run.records, name)
        assert list(differences(name, ours, rows_of_pandas(table), list(table.columns))) == []


# ---------------------------------------------------------------- single lines


def line(n: int, kind: str, **facts: Any) -> Line:
    return Line("controller.log", n, 1000 + n, kind, facts, None)


def move(n: int, partition: int, source: str, target: str, **facts: Any) -> Line:
    """Return the line of a transition of a partition of topic t, by controller 1 in epoch 4."""
    known = {"controller": 1, "epoch": 4, "topic": "t", "partition": partition, "from_state": source, "to_state": target}
    return line(n, "partition_transition", **known, **facts)


def run_of(*lines: Line, release: str = "2.8") -> Run:
    """Return the run that these lines show, after the check that files of journals pass."""
    return run_of_lines(lines, release, [1, 2, 3])


STATE = {"leader": 2, "isr": [2, 3], "leader_epoch": 5, "zk_version": 8}


def test_a_transition_that_the_release_does_not_have_is_marked() -> None:
    """The mark has both lines: that of the transition, and that of the transition before."""
    run = run_of(
        move(1, 0, "OfflinePartition", "OnlinePartition", **STATE), move(2, 0, "OnlinePartition", "NewPartition"),
        move(3, 1, "OfflinePartition", "OnlinePartition", **STATE), move(4, 1, "OfflinePartition", "OnlinePartition", **STATE),
        release="2.4",
    )  # fmt: skip
    marks = run.tables.transitions().mismatch.fillna("").tolist()
    assert marks[0] == marks[2] == ""
    assert marks[1] == "2.4 has no transition from OnlinePartition to NewPartition: controller.log:2, after controller.log:1"
    assert marks[3] == "controller.log:4 leaves OfflinePartition, and controller.log:3 has entered OnlinePartition"


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_transition_to_offline_that_a_release_hides_is_inferred(is_refused: bool) -> None:
    """From 2.6 on the next election of the partition, or its refusal, shows the transition, and none contradicts a line."""
    online, offline = "OnlinePartition", "OfflinePartition"
    refused = line(2, "partition_transition_failed", **move(2, 0, offline, online).facts)
    found = [move(1, 0, offline, online, **STATE), *([refused] if is_refused else []), move(3, 0, offline, online, **STATE)]
    table = (
        run_of(*found, release="2.6").tables.transitions().astype({"mismatch": object}).fillna({"inferred": "", "mismatch": ""})
    )
    rows = [tuple(row) for row in table[["source", "target", "inferred", "mismatch", "line"]].itertuples(index=False)]
    assert rows == [
        (offline, online, "", "", "controller.log:1"),
        (online, offline, "record", "", f"controller.log:{2 if is_refused else 3}"),
        (offline, online, "", "", "controller.log:3"),
    ]


def test_a_reassignment_that_deletes_a_replica_requests_no_deletion_of_the_topic() -> None:
    """The replica that leaves the assignment moves to ReplicaDeletionStarted, while the replica of the leader stays online."""
    about = {"controller": 1, "epoch": 4, "topic": "t", "partition": 0, "replica": 3}
    states = "OnlineReplica", "OfflineReplica", "ReplicaDeletionStarted", "ReplicaDeletionSuccessful", "NonExistentReplica"
    steps = [{"from_state": before, "to_state": after} for before, after in pairwise(states)]
    moves = [line(n, "replica_transition", **about, **step) for n, step in enumerate(steps, 2)]
    run = run_of(move(1, 0, "OfflinePartition", "OnlinePartition", **STATE), *moves, release="2.4")
    assert run.tables.deletions().empty


def test_a_partition_that_follows_its_replicas_requests_no_second_deletion() -> None:
    """Without controller.log the last replica's line ends the deletion; up to 2.2 the lines of the partition come later."""
    about = {"controller": 1, "epoch": 4, "topic": "t", "partition": 0, "replica": 2}
    states = "OnlineReplica", "OfflineReplica", "ReplicaDeletionStarted", "ReplicaDeletionSuccessful", "NonExistentReplica"
    steps = [{"from_state": before, "to_state": after} for before, after in pairwise(states)]
    found = [
        move(1, 0, "NonExistentPartition", "NewPartition", replicas=[2]),
        move(2, 0, "NewPartition", "OnlinePartition", leader=2, isr=[2], leader_epoch=0, zk_version=0),
        *(line(n, "replica_transition", **about, **step) for n, step in enumerate(steps, 3)),
        move(7, 0, "OnlinePartition", "OfflinePartition"), move(8, 0, "OfflinePartition", "NonExistentPartition"),
    ]  # fmt: skip
    table = run_of(*found, release="1.1").tables.deletions()
    assert rows(table, "topic", "line") == [("t", "controller.log:3")]


def test_a_new_assignment_may_come_before_the_deletion_of_a_replica_in_one_millisecond() -> None:
    """The transitions of a replica that a reassignment has removed do not put the replica back into the assignment."""
    about = {"controller": 1, "epoch": 4, "topic": "t", "partition": 0, "replica": 3}
    moves = [
        line(4, "replica_transition", **about, from_state=before, to_state=after)._replace(file="state-change.log", n=n)
        for n, (before, after) in enumerate(pairwise(["OnlineReplica", "OfflineReplica", "ReplicaDeletionStarted"]), 1)
    ]
    created = line(1, "topics_changed", controller=1, assignment={"t-0": [2, 3]})
    updated = line(4, "reassign_assignment_updated", controller=1, topic="t", partition=0, replicas=[2])
    run = run_of(created, move(2, 0, "NewPartition", "OnlinePartition", **STATE), updated, *moves, release="2.2")
    written = [
        op[2] for record in run.records if record.kind == "write" for op in record.fields["ops"] if op[1] == "/brokers/topics/t"
    ]
    assert written[-1] == '{"version":1,"partitions":{"0":[2]}}'


def test_a_former_leader_that_does_not_know_the_next_one_changes_no_isr() -> None:
    """A broker that was frozen logs a smaller ISR, and its write fails, because the controller has elected another leader."""
    about = {"topic": "t", "partition": 0, "broker": 3, "isr_from": [3, 2, 1], "isr_to": [3]}
    run = run_of(move(1, 0, "OfflinePartition", "OnlinePartition", **STATE), line(2, "isr_shrunk", **about))
    assert run.tables.isr_history().isr.tolist() == [[2, 3]]


def test_a_controller_without_a_line_about_its_election_is_inferred() -> None:
    """The first transition of a term shows the controller and its epoch; the term is a row, marked as inferred."""
    run = run_of(move(1, 0, "OfflinePartition", "OnlinePartition", **STATE))
    (row,) = run.tables.tenures().itertuples()
    assert (row.broker, row.controller_epoch, row.inferred, row.line) == (1, 4, "record", "controller.log:1")


@pytest.mark.parametrize(("last", "ended_by", "lives"), [("isr_updated", "znode deleted", 1), (None, "session ended", 0)])
def test_a_former_controller_lives_if_it_logs_more(last: str | None, ended_by: str, lives: int) -> None:
    """A controller that loses its term and logs more has not ended; without a later line its process is taken as ended."""
    more = [line(3, last, topic="t", partition=0, broker=1, isr=[1])._replace(broker=1)] if last else []
    run = run_of(
        line(1, "controller_elected", controller=1, epoch=4), line(2, "controller_elected", controller=2, epoch=5), *more
    )
    assert run.tables.tenures().ended_by.iloc[0] == ended_by
    assert run.tables.broker_lives().query("broker == 1").end_n.isna().sum() == lives


def test_an_isr_of_a_leader_is_not_written_if_zookeeper_refused_it() -> None:
    """A shrunk ISR is a row; one whose next line says that the zk version is stale is none."""
    known = {"topic": "t", "partition": 0, "broker": 2}
    run = run_of(
        move(1, 0, "OfflinePartition", "OnlinePartition", **STATE),
        line(2, "isr_shrunk", **known, isr_from=[2, 3], isr_to=[2]),
        line(3, "isr_expanded", **known, isr_from=[2], isr_to=[2, 3]),
        line(4, "isr_update_stale", **known, zk_version=9),
    )  # fmt: skip
    assert run.tables.isr_history().isr.tolist() == [[2, 3], [2]]


def test_an_election_has_the_isr_of_the_line_before_it() -> None:
    """Up to 1.0 "Selected new leader and ISR" comes before the transition; without that line ISR and epoch are inferred."""
    chosen = line(1, "leader_selected", topic="t", partition=0, leader=3, isr=[3, 1], leader_epoch=7)
    known = run_of(chosen, move(2, 0, "OfflinePartition", "OnlinePartition", leader=3), release="0.9")
    alone = run_of(move(2, 0, "OfflinePartition", "OnlinePartition", leader=3), release="0.9")
    assert rows(known.tables.isr_history(), "isr", "leader_epoch", "inferred") == [("[3, 1]", "7", "<NA>")]
    assert rows(alone.tables.isr_history(), "isr", "leader_epoch", "inferred") == [("[3]", "0", "isr, leader_epoch")]


@pytest.mark.parametrize(
    ("versions", "found", "release"),
    [
        (["2.4.1", "2.8.2"], [], "2.8.2"), (["7.0.1-ccs"], [r"leaderRecoveryState="], "3.9"), ([], [], "2.8"),
        ([], [r"hanged state of replica \d+ for partition \S+ from "], "0.8.1"),
    ],
)  # fmt: skip
def test_the_release_is_found_by_version_or_wording(versions: list[str], found: list[str], release: str) -> None:
    """The newest version counts; without a version of Apache Kafka, the first release that prints the wordings."""
    assert release_of(versions, found) == release


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "There is no log in"), (b"Jan  7 10:00:00 host cron[1]: run\n", "says anything about a cluster"),
     (bytes(range(256)) * 40, "is a binary file")],
)  # fmt: skip
@pytest.mark.spark
@pytest.mark.slow
def test_what_is_no_log_of_brokers_is_refused(tmp_path: Path, spark: Any, content: bytes | None, said: str) -> None:
    """An empty folder, logs of another program and a binary file are refused in one sentence."""
    if content is not None:
        (tmp_path / "server.log").write_bytes(content)
    with pytest.raises(UserError, match=said) as raised:
        Lab.open_logs(tmp_path)
    assert str(raised.value).count(". ") == 0


def test_an_unknown_release_is_refused(tmp_path: Path) -> None:
    """A release without rules is refused with an example."""
    with pytest.raises(UserError, match=r"no rules of release '4\.2': choose one of 0\.8\.0 to 3\.9"):
        Lab.open_logs(tmp_path, "4.2")
