"""Journals on Spark: the same records as in pandas, and who led what."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kcontrol import Lab, journal
from kcontrol.core.errors import UserError
from kcontrol.journal.journal import Record
from kcontrol.pipeline import spark_views
from kcontrol.pipeline.run_files import journal_files, journals_of
from kcontrol.pipeline.sources import journal_lines
from kcontrol.pipeline.spark_views import register
from kcontrol.views.decisions import leadership
from tests.lab.support import refusal
from tests.pipeline.spark_tables import made

COLUMNS = ["run", "n", "id", "at", "at_ms", "time_ms", "node", "incarnation", "seq", "kind", "cause", "fields"]


def rows(found: Any) -> pd.DataFrame:
    return found.sort_values(["node", "incarnation", "seq"]).set_index("id")


def leaders(records: list[Record]) -> list[tuple[str, int, int, int]]:
    """Partition, leader, its epoch and the zxid, for each time that a partition got another leader: record by record."""
    found, held = [], {}
    partitions = {str(r.fields["subject"]).partition("@")[0] for r in records if r.kind == "change"}
    for r in records:
        for tp in partitions:
            stored = leadership(r, tp) if r.kind in ("change", "write") else None
            if stored and stored["leader"] != held.get(tp):
                held[tp] = stored["leader"]
                found.append((tp, stored["leader"], stored["leader_epoch"], r.fields["zxid"]))
    return sorted(found)


@pytest.mark.spark
@pytest.mark.slow
def test_one_run_is_the_same_in_spark_and_in_pandas(spark: Any, runs: Path) -> None:
    """Every column that both have is equal, record by record, and the rest of each record is its JSON."""
    for path in sorted(runs.iterdir()):
        table = made(spark, path, "journal").toPandas()
        moment = Lab.open(path)
        mine, theirs = rows(table), rows(moment.journal().reset_index())
        assert list(table.columns) == COLUMNS and set(table.run) == {path.stem}
        for column in ("node", "incarnation", "seq", "kind", "cause"):
            assert mine[column].astype("object").where(mine[column].notna(), None).tolist() == [
                None if pd.isna(value) else value for value in theirs[column]
            ]
        assert (mine["at_ms"] == theirs["at_ms"]).all()
        fields = {str(record.id): record.fields for record in moment.records}
        assert {id: json.loads(text) for id, text in mine.fields.items()} == fields


@pytest.mark.spark
@pytest.mark.parametrize(("world", "given"), [("simulated", "at_ms"), ("zookeeper", "at"), ("recorded", "")])
def test_a_run_has_the_times_that_its_clock_has_measured(spark: Any, runs: Path, tmp_path: Path, world: str, given: str) -> None:
    """Virtual ms alone in a simulated run, dates alone in a run on a real ZooKeeper, and no time in a recording."""
    (lines,) = (path.read_text() for path in [min(runs.iterdir())])
    assert lines.count('"world":"simulated"') == 1
    path = tmp_path / f"{world}.jsonl"
    path.write_text(lines.replace('"world":"simulated"', f'"world":"{world}"'))
    register(spark, path, last="leaderships")
    for table in ("journal", "leaderships"):
        found = spark.table(table).toPandas()
        assert len(found) > 0
        assert {name: found[name].notna().mean() for name in ("at", "at_ms")} == {"at": 0, "at_ms": 0} | (
            {given: 1} if given else {}
        )


@pytest.mark.spark
def test_a_client_is_no_broker_0(spark: Any, tmp_path: Path) -> None:
    """Nodes and causes in Spark are those of `Lab.open`, also in a run with broker 0."""
    Lab([0, 1], topics={"t": [[0, 1]]}, runs=None).kill(0).run().save(path := tmp_path / "run.jsonl")
    mine, theirs = rows(made(spark, path, "journal").toPandas()), rows(Lab.open(path).journal().reset_index())
    assert set(mine["node"].dropna()) == {0, 1} and mine["node"].isna().any()
    for column in ("node", "cause"):
        assert mine[column].astype("object").where(mine[column].notna(), None).to_dict() == {
            id: None if pd.isna(value) else value for id, value in theirs[column].items()
        }


@pytest.mark.spark
def test_an_unknown_field_changes_no_table(spark: Any, runs: Path, tmp_path: Path) -> None:
    """With a field that no kind has in each record, each table but `journal` has the same rows; a missing field is NULL."""
    lines = [json.loads(line) for line in min(runs.iterdir()).read_text().splitlines()]
    write(tmp_path / "known.jsonl", lines)
    for record in lines[:-1]:
        record["fields"]["later"] = {"a": [1, None]}
    write(tmp_path / "later.jsonl", lines)
    journal_lines(spark, journals_of([tmp_path])[0]).createOrReplaceTempView("lines")
    for name in spark_views.TABLES:
        spark.sql(spark_views.table_sql(name)).cache().createOrReplaceTempView(name)
    found = {name: by_run(spark, name) for name in spark_views.TABLES if name != "journal"}
    spark.catalog.clearCache()
    assert [name for name, rows in found.items() if rows.get("known") != rows.get("later")] == []
    assert found["leaderships"]["known"]
    for record in (record for record in lines[:-1] if record["kind"] == "change"):
        record["fields"].pop("zxid", None)
    write(tmp_path / "later.jsonl", lines)
    register(spark, tmp_path / "later.jsonl", last="transitions")
    assert None in {row["zxid"] for row in spark.table("leaderships").collect()}
    assert by_run(spark, "transitions")["later"] == found["transitions"]["known"]


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def by_run(spark: Any, name: str) -> dict[str, list[str]]:
    """Return the sorted rows of a table by their runs."""
    found = defaultdict[str, list[str]](list)
    for row in spark.table(name).collect():
        found[row["run"]].append(str(row.asDict() | {"run": None}))
    return {run: sorted(rows) for run, rows in found.items()}


@pytest.mark.spark
def test_a_folder_is_all_its_runs(spark: Any, runs: Path) -> None:
    """A folder's table has every record of every run, each under the name of its file."""
    counted = {row["run"]: row["count"] for row in made(spark, runs, "journal").groupBy("run").count().collect()}
    assert counted == {path.stem: len(journal.read(path)) for path in runs.iterdir()} and len(counted) == 3


@pytest.mark.spark
def test_the_schema_is_written_down(spark: Any, runs: Path) -> None:
    """The columns' types do not depend on what is in the files."""
    assert made(spark, runs, "journal").schema.simpleString() == (
        "struct<run:string,n:int,id:string,at:timestamp,at_ms:bigint,time_ms:bigint,"
        "node:int,incarnation:int,seq:int,kind:string,cause:string,fields:string>"
    )


@pytest.mark.spark
def test_leaderships_are_what_was_written_to_zookeeper(spark: Any, runs: Path) -> None:
    """Each write of another leader, by any client, is one row in the order of zxids; a change of the ISR alone is none."""
    for path in sorted(runs.iterdir()):
        table = made(spark, path, "leaderships").collect()
        found = sorted((row.partition, row.leader, row.leader_epoch, row.zxid) for row in table)
        assert found == leaders(journal.read(path))


@pytest.mark.spark
def test_tenure_as_the_notebook_asks_for_it(spark: Any, runs: Path) -> None:
    """The learner's SQL has each partition's leaders in order and the duration of each; the last leader has none."""
    path = runs / "failover.jsonl"
    register(spark, path, last="leaderships")
    found = spark.sql("""
        SELECT partition, leader, lead(at_ms) OVER (PARTITION BY partition ORDER BY zxid) - at_ms AS led_for
        FROM leaderships ORDER BY partition, zxid
    """).toPandas()
    assert list(zip(found.partition, found.leader, strict=True)) == [("t-0", 2), ("t-1", 1), ("t-1", -1), ("t-1", 2)]
    assert found.led_for.isna().tolist() == [True, False, False, True]
    written = [
        r for r in journal.read(path) if r.kind == "change" and r.fields["write"] and r.fields["subject"].startswith("t-1")
    ]
    first, offline, second = (r.at_ms for r in written[:3])
    assert found.led_for[1:3].tolist() == [offline - first, second - offline]


@pytest.mark.spark
def test_a_line_that_was_cut_off_is_left_out(spark: Any, runs: Path, tmp_path: Path) -> None:
    """A run that was killed while it wrote has all its whole records."""
    path = tmp_path / "cut.jsonl"
    shutil.copy(min(runs.iterdir()), path)
    whole = len(journal.read(path))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 20)
    assert made(spark, path, "journal").count() == whole - 1


@pytest.mark.spark
def test_text_from_outside_is_data(spark: Any, tmp_path: Path) -> None:
    """A topic whose name is markup, quotes or SQL is a value like any other."""
    name = "<img src=x onerror=alert(1)> ' OR 1=1 --"
    lab = Lab(runs=tmp_path)
    lab.step(("create_topic", name, ((1, 2),)))  # by a client that checks no names
    lab.run()
    assert lab._file.path is not None
    register(spark, lab._file.path, last="leaderships")
    assert [row.partition for row in spark.table("leaderships").collect()] == [f"{name}-0"]


@pytest.mark.spark
def test_the_tables_on_spark_have_the_run_of_the_lab(spark: Any, tmp_path: Path) -> None:
    """`lab.spark()` has this lab's run as it is now, and not the others in the folder."""
    Lab(1, runs=tmp_path)
    lab = Lab(1, runs=tmp_path)
    assert lab.spark().table("journal").count() == len(lab.records)
    lab.create_topic("t", [[1]]).run()
    assert lab.spark().table("journal").count() == len(lab.records)


@pytest.mark.parametrize("make", [lambda p: p / "nowhere", lambda p: p])
def test_where_there_is_no_journal(tmp_path: Path, make: Any) -> None:
    """A path without a journal is refused in one sentence."""
    with pytest.raises(UserError) as problem:
        journal_files(make(tmp_path))
    refusal(problem)
