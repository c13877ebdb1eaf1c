"""A part of the records of logs: by the time that is written in the line, and by the topics in the facts."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kcontrol import Lab
from kcontrol.cli import app
from kcontrol.core.errors import UserError
from kcontrol.pipeline import pipeline, pipeline_report
from kcontrol.pipeline.logs import log_tables
from kcontrol.pipeline.logs.chosen_records import is_chosen
from kcontrol.pipeline.pipeline import ALL, MARK, Chosen
from tests.pipeline.log_rows import rows_of

DAY = "2019-05-06"
STATE = "[Controller id=3 epoch=8] Changed partition {}-1 state from OnlinePartition to OfflinePartition"
READY = "INFO [Controller id=3] Ready to serve as the new controller with epoch 8 (kafka.controller.KafkaController)"
LINES = (
    "no record",
    f"[{DAY} 07:59:59,999] TRACE {STATE.format('orders')} (state.change.logger)",
    "java.io.IOException: it continues the record before the time",
    f"[{DAY} 08:00:00,000] TRACE {STATE.format('orders')} (state.change.logger)",
    "java.io.IOException: it continues the first record in the time",
    f"[{DAY} 08:30:00,000] TRACE {STATE.format('payments')} (state.change.logger)",
    f"[{DAY} 08:40:00,000] {READY}",
    f"[{DAY} 08:50:00,000] INFO of no known kind (kafka.server.KafkaServer)",
    f"[{DAY} 09:00:00,000] {READY}",
)
EIGHT, NINE = datetime(2019, 5, 6, 8), datetime(2019, 5, 6, 9)  # noqa: DTZ001 - the times of a log have no zone
FACTS = {
    ("partition_transition", "topic", '"orders"'): True,
    ("partition_transition", "topic", '"orders-1"'): False,
    ("topics_changed", "deleted_topics", '["payments","orders"]'): True,
    ("topics_changed", "deleted_topics", '["payments"]'): False,
    ("topics_changed", "deleted_topics", "[]"): True,
    ("offline_replicas_marked", "partitions", '["payments-0","orders-1"]'): True,
    ("offline_replicas_marked", "partitions", '["payments-0","orders-1-1"]'): False,
    ("deletion_replicas_done", "replicas", '["orders-1@2"]'): True,
    ("deletion_replicas_done", "replicas", '["payments-1@2"]'): False,
    ("preferred_replicas", "assignment", '{"orders-0":[1,2]}'): True,
    ("preferred_replicas", "assignment", '{"payments-0":[1,2]}'): False,
    ("state_machine_started", "states", '{"payments-0":"OnlinePartition"}'): False,
    ("members_not_rejoined", "members", '["consumer-1"]'): True,
    ("reassign_started", "replicas", "[1,2]"): True,
    ("controller_ready", "epoch", "8"): True,
}
"""Whether a record with this kind and this fact belongs to the topic `orders`, or to no topic."""


@pytest.mark.spark
def test_a_record_belongs_to_the_topics_in_its_facts(spark: Any) -> None:
    """A record is kept if one of the topics in its facts is the chosen one, and if its facts name no topic."""
    rows = [(kind, {name: value}, None) for kind, name, value in FACTS]
    table = spark.createDataFrame(rows, "kind STRING, facts MAP<STRING, STRING>, local_time TIMESTAMP_NTZ")
    found = table.select("kind", "facts", is_chosen(Chosen(topic="orders")).alias("is_chosen")).collect()
    assert {(row.kind, *next(iter(row.facts.items()))): row.is_chosen for row in found} == FACTS


@pytest.mark.spark
def test_a_record_without_a_time_is_in_no_limits(spark: Any) -> None:
    """With --from or with --to a record without a time is left out; without limits it is kept."""
    table = spark.createDataFrame([(None,)], "local_time TIMESTAMP_NTZ")
    columns = [is_chosen(chosen) for chosen in (ALL, Chosen(since=EIGHT), Chosen(until=NINE))]
    assert tuple(table.select(*columns).first()) == (True, False, False)


@pytest.mark.spark
@pytest.mark.slow
def test_the_lines_of_records_that_were_not_chosen_are_counted(spark: Any, tmp_path: Path) -> None:
    """The table has the records from 8 o'clock until before 9 of one topic; the lines of the others are counted as left out."""
    log, out = tmp_path / "server.log", tmp_path / "out"
    log.write_text("\n".join(LINES) + "\n")
    written = log_tables.write_logs(spark, [log], out, chosen=Chosen(EIGHT, NINE, "orders"))
    assert sorted(row["n"] for row in rows_of(out, "records")) == [4, 7, 8]
    assert [row["n"] for row in rows_of(out, "rejected")] == [1]
    assert written[2:] == (len(LINES), 2, 1, 1, 1, 4)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(UserError, match="No record of these logs is in this time or about this topic"):
        log_tables.write_logs(spark, [log], out, chosen=Chosen(since=NINE.replace(hour=10)))
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert sorted(path.name for path in out.iterdir()) == [MARK, *log_tables.TABLES]


def test_the_command_passes_time_and_topic_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pipeline logs --from --to --topic` reach the function that writes the tables; a text that is no time is refused."""
    given: list[Any] = []
    monkeypatch.setattr(pipeline_report, "logs", lambda *arguments: given.append(arguments) or True)
    command = ["pipeline", "logs", str(tmp_path), "--out", str(tmp_path / "out")]
    chosen = ["--from", f"{DAY}T08:00", "--to", f"{DAY}T09:00", "--topic", "orders"]
    assert CliRunner().invoke(app, [*command, *chosen]).exit_code == 0
    assert given[0][3] == Chosen(EIGHT, NINE, "orders")
    refused = CliRunner().invoke(app, [*command, "--to", "noon"])
    assert refused.exit_code == 1 and "--to 'noon' is not a time" in str(refused.exception) and len(given) == 1


@pytest.mark.spark
@pytest.mark.slow
def test_a_topic_that_no_line_names_is_refused(spark: Any, tmp_path: Path) -> None:
    """If no line names the topic, the sentence lists the topics of the lines, also those outside of the chosen time."""
    log, out = tmp_path / "server.log", tmp_path / "out"
    log.write_text("\n".join(LINES) + "\n")
    with pytest.raises(UserError) as raised:
        log_tables.write_logs(spark, [log], out, chosen=Chosen(EIGHT, None, "order"))
    assert str(raised.value) == "No line names the topic of --topic: the topics found are orders and payments."
    assert [path.name for path in out.iterdir()] == [MARK]


@pytest.mark.parametrize("topic", ["order", "no such topic!", ""])
def test_any_text_that_is_no_topic_of_the_lines_is_refused(topic: str) -> None:
    """A part of a topic's name, a text that no topic can have, and an empty text are refused as other topics are."""
    with pytest.raises(UserError, match=r"^No line names the topic of --topic: the topics found are orders and payments\.$"):
        pipeline.check_topic(topic, ["payments", "orders"], "No line")


@pytest.mark.spark
@pytest.mark.slow
def test_a_topic_that_no_run_names_is_refused(spark: Any, tmp_path: Path) -> None:
    """If no run names the topic, the sentence lists the topics of the runs, and the tables of an earlier call stay."""
    journal, out = tmp_path / "run.jsonl", tmp_path / "out"
    Lab(topics={"t.x-1": [[1, 2]], "u": [[1]]}, runs=None).run().save(journal)
    with pytest.raises(UserError) as raised:
        pipeline.write_runs(spark, [journal], out, chosen=Chosen(topic="t.x"))
    assert str(raised.value) == "No run names the topic of --topic: the topics found are t.x-1 and u."
    assert [path.name for path in out.iterdir()] == [MARK]


@pytest.mark.spark
@pytest.mark.slow
def test_a_committed_topic_without_a_znode_is_found(spark: Any) -> None:
    """The topics of runs include those of committed offsets and of transitions, with dots and dashes in their names."""
    offsets = {"event": "OffsetsStored", "offsets": {"pay-1.x-0": {"offset": 7, "metadata": ""}}}
    fields = {"append": {"completion_event": offsets}, "change": {"subject": "a-b-12@3"}, "group": {"subject": "no-1"}}
    rows = [(kind, json.dumps(values)) for kind, values in fields.items()]
    spark.createDataFrame(rows, "kind STRING, fields STRING").createOrReplaceTempView("journal")
    assert sorted(row["topic"] for row in spark.sql(pipeline.TOPICS).collect()) == ["a-b", "pay-1.x"]
