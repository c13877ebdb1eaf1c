"""Broker logs as a run: the lines about the requests of controllers give the table `requests`.

The outside reference is the request log of real brokers. `kafka_requests/` has the files state-change.log and controller.log of
three brokers of 0.9.0.1 and of 2.8.2, recorded with `tests.oracle.recorder`: two topics, a crash, a deletion, a frozen
controller, a controlled shutdown, a deleted `/controller`. `requests.tsv` counts the requests in the request.log files of this
run. The lines of single tests are those of ControllerChannelManager.scala, KafkaApis.scala and StateChangeLogger.scala
(0.9.0.1, 2.8.2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kcontrol import Lab
from kcontrol.journal import journal_file
from kcontrol.journal.journal import Record
from kcontrol.lab.history import history_tables, log_evidence
from kcontrol.lab.run import Run
from kcontrol.pipeline.log_journal import evidence
from kcontrol.pipeline.log_journal.log_line import Line
from kcontrol.pipeline.log_journal.to_journal import to_journal
from kcontrol.pipeline.logs import log_tables
from tests.pipeline.comparison import differences, rows_of_pandas, rows_of_spark
from tests.pipeline.log_runs import journals_of, run_of_lines

RECORDED = Path(__file__).parent / "kafka_requests"
KEY = ["api", "sender", "receiver", "controller_epoch"]
# Requests that the controller's log has and no broker's request log: the receiver was dead.
UNREAD = {"0.9.0.1": {("LeaderAndIsr", 2, 3, 2): 1, ("UpdateMetadata", 2, 3, 2): 1}, "2.8.2": {("UpdateMetadata", 2, 3, 2): 1}}


def counted(table: pd.DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter((api, *map(int, numbers)) for api, *numbers in table[KEY].itertuples(index=False))


def disagreements(records: Sequence[Record], place: Path, spark: Any) -> list[Any]:
    """Return where the table `requests` that Spark writes for a run of logs differs from the table of pandas."""
    place.mkdir(exist_ok=True)
    assert "requests" in evidence.write_tables(spark, records, place)
    spark.read.parquet(str(place / "requests")).createOrReplaceTempView("written")
    table = log_evidence.with_evidence(history_tables.table(records, "logs", "requests"), records, "requests")
    return list(differences("requests", rows_of_spark(spark, "written"), rows_of_pandas(table), list(table.columns)))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> dict[str, Run]:
    """The run that is made from the recorded log files of each release."""
    from kcontrol.pipeline.log_journal.fact_lines import logs_of

    found = {}
    for release in UNREAD:
        out = tmp_path_factory.mktemp("tables") / release
        log_tables.write_logs(spark, [RECORDED / release], out)
        logs = logs_of(spark.read.parquet(str(out / "records")))
        records = journal_file.check(to_journal(logs.lines(), logs.release, logs.brokers, zone=logs.zone))
        found[release] = Run(list(records), release)
    return found


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("release", UNREAD)
def test_the_controllers_log_has_the_requests_of_the_request_logs(recorded: dict[str, Run], release: str) -> None:
    """Each request in the request logs of real brokers is a row; a row more is a request to a broker that had died."""
    ours = recorded[release].tables.requests()
    theirs = pd.read_csv(RECORDED / release / "requests.tsv", sep="\t")
    expected = Counter({tuple(row[:4]): row[4] for row in theirs.itertuples(index=False)})
    assert counted(ours) == expected + Counter(UNREAD[release])
    assert counted(ours[ours.state == "dropped"]) == UNREAD[release]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("release", UNREAD)
def test_spark_and_pandas_agree_about_the_requests_of_logs(
    recorded: dict[str, Run], tmp_path: Path, spark: Any, release: str
) -> None:
    """The table `requests` that the pipeline writes for logs has the cells of the run's own table, with its evidence."""
    assert disagreements(recorded[release].records, tmp_path, spark) == []


@pytest.mark.spark
@pytest.mark.slow
def test_the_logs_give_back_the_requests_of_a_run(tmp_path: Path, spark: Any) -> None:
    """Each request of a run whose line the engine writes is a row; without a line about a response its state is missing."""
    # The engine writes the line of each request from 2.6 on, and the lines about LeaderAndIsr from 0.9 on.
    apis = {"0.9": {"LeaderAndIsr"}, "2.8": {"LeaderAndIsr", "UpdateMetadata", "StopReplica"}}
    labs = {release: Lab(release=release, brokers=3, topics={"t": [[1, 2], [2, 3]]}, runs=None).run() for release in apis}
    for lab in labs.values():
        lab.kill(2).run()
        lab.start(2).run()
    for release, (lab, run) in journals_of(spark, tmp_path, labs).items():
        ours, theirs = (owner.tables.requests() for owner in (run, lab))
        assert counted(ours) == counted(theirs[theirs.api.isin(apis[release])]), release
        assert ours.state.isna().all() and set(ours.inferred) == {"state"}, release
        assert disagreements(run.records, tmp_path / release, spark) == []


# ---------------------------------------------------------------- single lines


def states(release: str, *facts: tuple[str, dict[str, Any]]) -> list[tuple[Any, ...]]:
    """(API, receiver, state, inferred columns) of each request in lines of controller 1, epoch 4; all three have registered."""
    about = {"controller": 1, "epoch": 4}
    known = ("brokers_changed", {"controller": 1, "added": [1, 2, 3], "deleted": [], "live": [1, 2, 3]})
    lines = [Line("controller.log", n, 1000 + n, kind, about | more, 1) for n, (kind, more) in enumerate((known, *facts), 1)]
    table = run_of_lines(lines, release, [1, 2, 3]).tables.requests().fillna({"state": "", "inferred": ""})
    return [(row.api, int(row.receiver), row.state, row.inferred) for row in table.itertuples()]


def sent(api: str, receiver: int, partition: int | None = None) -> tuple[str, dict[str, Any]]:
    """Return the line about a request, or about a partition of topic t in a request."""
    receivers = {"to_brokers": [receiver]} if api == "update_metadata" else {"to_broker": receiver}
    if partition is None:
        return f"{api}_sent_batch", receivers
    return f"{api}_sent", receivers | {"topic": "t", "partition": partition}


def response(receiver: int, **facts: Any) -> tuple[str, dict[str, Any]]:
    return "controller_response", {"to_node": f"Node({receiver}, host, 9092)"} | facts


def test_the_lines_about_partitions_are_one_request() -> None:
    """Up to 2.5 a request has a line per partition; a second line about a partition begins the next request."""
    lines = sent("leader_and_isr", 2, 0), sent("leader_and_isr", 2, 1), sent("leader_and_isr", 2, 0)
    assert states("0.9", *lines, response(2, lists="partitions")) == [
        ("LeaderAndIsr", 2, "answered", ""),
        ("LeaderAndIsr", 2, "waiting", "state"),
    ]


def test_a_response_without_a_name_belongs_to_the_request_of_its_form() -> None:
    """Up to 1.0 a response does not name its request: one with a list of partitions is not that of UpdateMetadata."""
    lines = sent("leader_and_isr", 2, 0), sent("update_metadata", 2, 0)
    assert states("0.9", *lines, response(2, lists="partitions")) == [
        ("LeaderAndIsr", 2, "answered", ""),
        ("UpdateMetadata", 2, "waiting", "state"),
    ]
    # A channel has one request in flight: the response to the second request shows that the first has a response too.
    assert [row[2] for row in states("0.9", *lines, response(2))] == ["answered", "answered"]


def test_a_request_without_a_line_is_known_by_its_response() -> None:
    """Up to 2.5 StopReplica has no line about its sending: its time is inferred from the line about its response."""
    assert states("2.4", response(2, api="STOP_REPLICA", correlation=7)) == [("StopReplica", 2, "answered", "time")]


def test_an_old_controller_epoch_is_refused() -> None:
    """A broker's line about an old controller epoch is the response to the request with this correlation id."""
    stale = ("stale_controller", {"api": "LeaderAndIsr", "correlation": 3, "broker": 2})
    assert states("2.8", sent("leader_and_isr", 2), stale) == [("LeaderAndIsr", 2, "refused", "")]


def test_a_request_to_a_broker_that_ends_is_dropped() -> None:
    """No line says that a request was dropped: the state is inferred from the end of the receiver."""
    failed = ("brokers_changed", {"added": [], "deleted": [2], "live": [1, 3]})
    lines = sent("update_metadata", 2), response(2, api="UPDATE_METADATA", correlation=0), sent("update_metadata", 2)
    assert states("2.8", *lines, failed) == [("UpdateMetadata", 2, "answered", ""), ("UpdateMetadata", 2, "dropped", "state")]


def test_a_restarted_broker_does_not_respond_to_requests_from_before_its_end() -> None:
    """A response after the restart of the receiver belongs to a request that was sent after it."""
    failed = ("brokers_changed", {"added": [], "deleted": [2], "live": [1, 3]})
    added = ("brokers_changed", {"added": [2], "deleted": [], "live": [1, 2, 3]})
    request = sent("update_metadata", 2)
    found = states("2.8", request, failed, added, request, response(2, api="UPDATE_METADATA", correlation=0))
    assert found == [("UpdateMetadata", 2, "dropped", "state"), ("UpdateMetadata", 2, "answered", "")]


def test_without_lines_about_responses_the_state_is_missing() -> None:
    """From 2.6 on the lines about responses are hidden by default: a request without one may have been answered."""
    assert states("2.8", sent("leader_and_isr", 2)) == [("LeaderAndIsr", 2, "", "state")]
