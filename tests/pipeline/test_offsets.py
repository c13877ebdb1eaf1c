"""The tables of segments: a real segment of 3.1.0 record by record, transactions, choices, and sentences of the command."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kcontrol.cli import app
from kcontrol.core.errors import UserError
from kcontrol.pipeline import pipeline_report
from kcontrol.pipeline.offsets import offset_tables
from kcontrol.pipeline.offsets.offset_tables import write_offsets
from kcontrol.pipeline.offsets.segments import Segment, rows
from kcontrol.pipeline.pipeline import MARK, Chosen
from tests.pipeline.log_rows import Row, rows_of
from tests.pipeline.segment_files import batch, commit, group, marker

REAL = "3.1.0-__consumer_offsets-21"


def expected(folder: Path) -> list[Row]:
    return [json.loads(line) for line in (folder / f"{REAL}.expected.jsonl").read_text().splitlines()]


def as_reference(row: Row) -> Row:
    """Return a row of a table in the words of the reference."""
    is_offset = row["partition"] is not None
    key = {"kind": "offset" if is_offset else "group", "kv": row["key_version"], "group": row["group_id"]}
    if is_offset:
        topic, partition = row["partition"].rsplit("-", 1)
        key |= {"topic": topic, "partition": int(partition)}
    value = _value(row, is_offset)
    return {"offset": row["log_offset"], "timestamp": row["time_ms"], "batch": "DefaultRecordBatch", "key": key, "value": value}


def _value(row: Row, is_offset: bool) -> Row | None:
    if "of" in row:
        return None
    if is_offset:
        return {
            "vv": row["value_version"], "offset": row["offset"], "leaderEpoch": row["leader_epoch"], "metadata": row["metadata"],
            "commitTimestamp": row["commit_timestamp"],
        }  # fmt: skip
    return {
        "vv": row["value_version"], "protocolType": row["protocol_type"], "generation": row["generation"],
        "protocol": row["protocol"], "leader": row["leader"], "currentStateTimestamp": row["current_state_timestamp"],
        "members": [_member(member) for member in row["members"]],
    }  # fmt: skip


def _member(member: Row) -> Row:
    topics: dict[str, list[int]] = {}
    for name in member["partitions"]:
        topics.setdefault(name.rsplit("-", 1)[0], []).append(int(name.rsplit("-", 1)[1]))
    return {
        "memberId": member["member_id"], "groupInstanceId": member["group_instance_id"], "clientId": member["client_id"],
        "clientHost": member["client_host"], "rebalanceTimeout": member["rebalance_timeout"],
        "sessionTimeout": member["session_timeout"], "assignment": [[topic, found] for topic, found in topics.items()],
    }  # fmt: skip


@pytest.mark.shared
@pytest.mark.spark
@pytest.mark.slow
def test_a_real_segment_gives_exactly_its_records(shared: Path, spark: Any, tmp_path: Path) -> None:
    """The tables of a segment of a 3.1.0 broker have its 206 records, field by field, and no other row."""
    folder = shared / "logs" / "offsets"
    written = write_offsets(spark, [folder], tmp_path / "out")
    found = [
        row | {"partition": row.get("partition")} for name in offset_tables.TABLES for row in rows_of(tmp_path / "out", name)
    ]
    assert sorted(map(as_reference, found), key=lambda row: row["offset"]) == expected(folder)
    assert (written.records, written.rows["rejected"], {row["log_partition"] for row in found}) == (206, 0, {21})
    assert {row["day"] for row in found} == {row["time_utc"].date().isoformat() for row in found}


@pytest.mark.shared
def test_a_real_segment_is_read_up_to_a_cut(shared: Path, tmp_path: Path) -> None:
    """A copy of the real segment that is cut in the middle of any batch gives the records before it, and a rejected row."""
    folder = shared / "logs" / "offsets"
    data, records = (folder / f"{REAL}.log").read_bytes(), [row["offset"] for row in expected(folder)]
    whole = list(rows(Segment(folder / f"{REAL}.log", len(data), None)))
    for place in [row.position for row in whole if row.length]:
        (tmp_path / "cut.log").write_bytes(data[: place + 40])
        *read, last = rows(Segment(tmp_path / "cut.log", place + 40, None))
        assert [row.log_offset for row in read] == records[: sum(row.position < place for row in whole)]
        assert (last.kind, last.position, last.length) == ("rejected", place, 40)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The segments of two partitions: transactions over two files, offsets of two topics, a damaged batch."""
    folder = tmp_path_factory.mktemp("a broker's [logs]") / "kafka logs"
    one, two = folder / "__consumer_offsets-1", folder / "__consumer_offsets-2"
    for place in (one, two):
        place.mkdir(parents=True)
    (one / "00000000000000000000.log").write_bytes(
        batch(0, [commit(0, 1)], producer=7) + batch(1, [commit(0, 2)], producer=8) + batch(2, [commit(0, 3)]) + marker(3, 7, 1)
    )
    (one / "00000000000000000004.log").write_bytes(
        marker(4, 8, 0) + batch(5, [commit(0, 4)], producer=7) + batch(6, [commit(0, 5, topic="u-1"), group()])
    )
    damaged = bytearray(batch(0, [commit(1, 6)]))
    damaged[-1] ^= 1
    (two / "00000000000000000000.log").write_bytes(bytes(damaged) + marker(1, 7, 0) + batch(2, [commit(1, None)], 0))
    return folder


@pytest.mark.spark
@pytest.mark.slow
def test_the_next_marker_of_its_producer_decides_a_transaction(logs: Path, spark: Any, tmp_path: Path) -> None:
    """Offsets of a transaction are committed, aborted or open, by the markers of their producer in their partition alone."""
    written = write_offsets(spark, [logs], tmp_path / "out")
    found = {row["offset"]: row["transaction"] for row in rows_of(tmp_path / "out", "commits")}
    assert found == {1: "committed", 2: "aborted", 3: None, 4: "open", 5: None}
    assert (written.records, written.markers, written.refused) == (10, 3, [])
    (rejected,) = rows_of(tmp_path / "out", "rejected")
    assert (
        Path(rejected["file"]).parent.name == "__consumer_offsets-2"
        and rejected["reason"] == "The CRC of the batch does not fit its bytes."
    )
    (tombstone,) = rows_of(tmp_path / "out", "tombstones")
    assert (tombstone["partition"], tombstone["time_utc"], tombstone["day"]) == ("t-1", None, "unknown")


@pytest.mark.spark
@pytest.mark.slow
def test_times_and_a_topic_choose_rows(logs: Path, spark: Any, tmp_path: Path) -> None:
    """`--from` and `--to` are limits in UTC, `--topic` keeps rows of the topic and of groups; a call replaces the tables."""
    at, later = datetime.fromisoformat("2022-04-26T01:47:08.841"), datetime.fromisoformat("2022-04-26T01:47:08.842")
    cases = {Chosen(at, later): (5, 1), Chosen(later): (0, 0), Chosen(None, at): (0, 0), Chosen(None, None, "u-1"): (1, 1)}
    for chosen, counts in cases.items():
        written = write_offsets(spark, [logs], tmp_path / "out", chosen=chosen)
        assert (written.rows["commits"], written.rows["group_metadata"], written.rows["rejected"]) == (*counts, 1)
        assert [len(rows_of(tmp_path / "out", name)) for name in offset_tables.TABLES] == list(written.rows.values())


@pytest.mark.spark
@pytest.mark.slow
def test_a_topic_that_no_record_names_is_refused(logs: Path, spark: Any, tmp_path: Path) -> None:
    """If no committed offset is of the topic, the sentence lists the topics of the offsets, and no table is written."""
    with pytest.raises(UserError) as raised:
        write_offsets(spark, [logs], tmp_path / "out", chosen=Chosen(topic="u"))
    assert str(raised.value) == "No record names the topic of --topic: the topics found are t and u-1."
    assert [path.name for path in (tmp_path / "out").iterdir()] == [MARK]


@pytest.mark.spark
@pytest.mark.slow
def test_lost_bytes_leave_the_former_tables(logs: Path, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the rows of a file do not have all of its bytes, an error names the file, and the former tables stay."""
    write_offsets(spark, [logs], tmp_path / "out")
    grown = [segment._replace(size=segment.size + 1) for segment in offset_tables.segments([logs])]
    monkeypatch.setattr(offset_tables, "_tuples", lambda *_: iter([]))
    monkeypatch.setattr(offset_tables, "segments", lambda _: grown)
    with pytest.raises(offset_tables.BytesLost, match="do not have all of its bytes"):
        write_offsets(spark, [logs], tmp_path / "out")
    assert len(rows_of(tmp_path / "out", "commits")) == 5


@pytest.mark.spark
@pytest.mark.slow
def test_the_command_reports_rows_and_foreign_files(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command prints what it read; a file without a record is named, and the exit status is 1."""
    monkeypatch.setattr(pipeline_report, "stop_spark", lambda: None)  # later tests use the session
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(batch(0, [commit(0, 1), group()]))
    good = CliRunner().invoke(app, ["pipeline", "offsets", str(folder), "--out", str(tmp_path / "out")])
    assert (good.exit_code, "1 segment was read: 2 records, with 0 ends of transactions." in good.output) == (0, True)
    assert "1 in commits, 1 in group_metadata, 0 in tombstones, 0 in rejected" in good.output
    (folder / "00000000000000000009.log").write_text("[2019-05-06 07:08:09,123] INFO no segment but a log of text\n")
    (folder / "00000000000000000011.log").write_bytes(b"")
    bad = CliRunner().invoke(app, ["pipeline", "offsets", str(folder), "--out", str(tmp_path / "out")])
    assert (bad.exit_code, "00000000000000000009.log gives no record: No batch begins here" in bad.output) == (1, True)
    assert "00000000000000000011.log" not in bad.output


def test_other_folders_and_times_are_refused(tmp_path: Path) -> None:
    """A folder that holds other files, a path without a segment, and a time with a zone are refused before Spark starts."""
    (tmp_path / "00000000000000000000.log").write_bytes(b"")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    for arguments, words in (
        (["--out", str(tmp_path / "mine")], "holds other files, such as thesis.txt"),
        (["--out", str(tmp_path / "out"), "--from", "2022-04-26T01:00+02:00"], "is not a time without a zone"),
    ):
        done = CliRunner().invoke(app, ["pipeline", "offsets", str(tmp_path), *arguments])
        assert isinstance(done.exception, UserError) and words in str(done.exception)
    done = CliRunner().invoke(app, ["pipeline", "offsets", str(tmp_path / "mine"), "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, UserError) and "There is no segment in" in str(done.exception)
    assert not (tmp_path / "out").exists()
