"""The tables of whole runs: what `lab.tables` shows is what the SQL on Spark makes, in every cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.journal import journal_file
from kcontrol.lab.history.history_tables import TABLES, table
from kcontrol.lab.run import Run
from kcontrol.pipeline import spark_views
from kcontrol.pipeline.run_files import journals_of
from kcontrol.pipeline.sources import journal_lines
from tests.lab.group_runs import RUNS, played
from tests.parts import ROOT
from tests.pipeline.comparison import Rows, differences, rows_of_pandas, rows_of_spark
from tests.pipeline.random_runs import random_run

GOLDEN, SHIPPED = ROOT / "tests" / "golden" / "recordings", ROOT / "notebooks" / "recordings"
RECORDINGS = sorted([*GOLDEN.rglob("*.json"), *SHIPPED.rglob("group/*.json")])  # the others of SHIPPED are copies
LONGEST_SQL = 25


def records_lost() -> Run:
    """Return a run in which an unclean election loses an acknowledged record."""
    lab = Lab(brokers=2, topics={"t": [[1, 2]]}, data=True, runs=None, config={"unclean.leader.election.enable": True})
    lab.run()
    lab.kill(2).run().produce("t-0", "only on 1", acks=1).run()
    return lab.kill(1).run().start(2).run().start(1).run()


def every_run() -> Iterator[tuple[str, Run]]:
    """Yield 50 random runs, all recordings, twelve runs of groups, a run that loses a record, and one with a client's writes."""
    yield from ((f"random {seed}", random_run(seed)) for seed in range(50))
    yield from ((" ".join(path.with_suffix("").parts[-3:]), Lab.open(path)) for path in RECORDINGS)
    yield from ((f"group {name}", played(name)) for name in RUNS)
    yield "lost", records_lost()
    yield "written", written_by_a_client()


def written_by_a_client() -> Run:
    """Return a run in which a client writes a topic znode that no one can read, deletes a state znode, and names a controller."""
    lab = (
        Lab(brokers=3, topics={"t": [[1, 2]], "u": [[2, 3]]}, runs=None)
        .run()
        .reassign({"u-0": [3, 1]})
        .run()
        .delete_topic("u")
        .run()
    )
    for text in ('{"version":1,"partitions":{"0":[1,2],"1":[2]}}', '{"version":1,"partitions":{"0":"x"}}', "no JSON"):
        lab.zk.set("/brokers/topics/t", text).run()
    lab.zk.set("/brokers/topics/t/partitions/0/state", "no JSON").zk.set("/controller", "3").run()
    return lab.zk.delete("/brokers/topics/t/partitions/0/state").run()


@pytest.fixture(scope="module")
def in_both(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Rows, Rows]]]:
    """The rows of each table of all runs, as Spark makes them and as `tables` of the run shows them."""
    folder, ours = tmp_path_factory.mktemp("every run"), dict[str, Rows]({name: [] for name in TABLES})
    for name, run in every_run():
        run.save(folder / f"{name}.jsonl")
        for made in TABLES:
            ours[made] += rows_of_pandas(getattr(Run(run.records, name).tables, made)())
    journals, refused = journals_of([folder])
    assert not refused
    journal_lines(spark, journals).createOrReplaceTempView("lines")
    theirs: dict[str, Rows] = {}
    for made in spark_views.TABLES:
        spark.sql(spark_views.table_sql(made)).cache().createOrReplaceTempView(made)
        if made in TABLES:
            theirs[made] = rows_of_spark(spark, made)
    yield {made: (theirs[made], ours[made]) for made in TABLES}
    spark.catalog.clearCache()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_spark_and_the_lab_have_equal_tables(in_both: dict[str, tuple[Rows, Rows]], name: str) -> None:
    """Names, columns, order of columns and every cell of the table are equal in Spark and in `lab.tables`; it has rows."""
    theirs, ours = in_both[name]
    assert ours != []
    assert list(differences(name, theirs, ours, list(TABLES[name].columns))) == []


@pytest.mark.parametrize("opened", [lambda: Lab.open("2.8.2/isr-order"), lambda: played("2.8 leave"), written_by_a_client])
def test_a_table_of_a_lab_is_the_one_that_pandas_makes(opened: Callable[[], Run]) -> None:
    """`lab.tables` has each table by its name, with the columns and rows of the function."""
    run = opened()
    for name in TABLES:
        shown, made = getattr(run.tables, name)(), table(run.records, run.name, name)
        assert list(shown.columns) == list(TABLES[name].columns) and shown.equals(made), name


def test_a_table_of_partitions_is_limited_to_one() -> None:
    """A table with a column `partition` takes the name of one, and has its rows alone; an unknown partition is refused."""
    lab = Lab(topics={"t": [[1, 2], [2, 1]]}, runs=None).run().kill(1).run()
    for name, made in TABLES.items():
        ask = getattr(lab.tables, name)
        if "partition" not in made.columns:
            with pytest.raises(UserError, match=r"has too many arguments"):
                ask("t-0")
            continue
        whole = ask()
        assert rows_of_pandas(ask("t-0")) == [row for row in rows_of_pandas(whole) if row["partition"] == "t-0"]
        with pytest.raises(UserError, match=r"There is no partition 't-9'; the partitions are t-0 and t-1"):
            ask("t-9")


@pytest.mark.spark
def test_rebalances_of_a_session_window_are_one_disturbance(spark: Any, tmp_path: Path) -> None:
    """Begins that are 5 s apart have one `disturbance_begin_ms`, in Spark and in pandas; a begin 1 ms later has another."""
    begins = {0: 0, 200: 5_000, 700: 10_001, 1000: 15_001}  # the times in the recording, and the times in this test
    recorded = Lab.open("0.9.0.1/group/leader-leaves").records
    latest = [max(time for time in begins if time <= record.at_ms) for record in recorded]
    records = [r._replace(at_ms=r.at_ms - before + begins[before]) for r, before in zip(recorded, latest, strict=True)]
    journal_file.write(records, tmp_path / "run.jsonl")
    ours = rows_of_pandas(table(records, "run", "rebalances"))
    assert [(row["begin_ms"], row["disturbance_begin_ms"]) for row in ours] == [
        (0, 0), (5_000, 0), (10_001, 10_001), (15_001, 10_001),
    ]  # fmt: skip
    journal_lines(spark, journals_of([tmp_path])[0]).createOrReplaceTempView("lines")
    for made in spark_views.TABLES:
        spark.sql(spark_views.table_sql(made)).createOrReplaceTempView(made)
    assert list(differences("rebalances", rows_of_spark(spark, "rebalances"), ours, list(TABLES["rebalances"].columns))) == []


WRONG = {
    "a changed cell": lambda rows: [rows[0] | {"leader": 9}, *rows[1:]],
    "a missing row": lambda rows: rows[1:],
    "a row twice": lambda rows: [*rows, rows[0]],
    "a column of another name": lambda rows: [{"chief" if c == "leader" else c: v for c, v in row.items()} for row in rows],
}


@pytest.mark.parametrize("fault", WRONG)
@pytest.mark.parametrize("faulty", ["Spark", "pandas"])
def test_a_fault_in_either_table_is_named(fault: str, faulty: str) -> None:
    """A fault in the table of Spark or of pandas is a difference that names the table and the record."""
    run = Lab.open("2.8.2/leader-killed")
    rows = rows_of_pandas(table(run.records, "killed", "leaderships"))
    wrong = WRONG[fault](rows)
    columns = list(TABLES["leaderships"].columns)
    found = list(differences("leaderships", *((wrong, rows) if faulty == "Spark" else (rows, wrong)), columns))
    assert list(differences("leaderships", rows, rows, columns)) == []
    assert found and found[0].startswith(f"leaderships: run killed, record {rows[0]['n']}, row ")


@pytest.mark.parametrize("name", spark_views.TABLES)
def test_a_table_is_one_short_text(name: str) -> None:
    """The SQL text of each table has at most 25 lines and begins with a sentence about its rows."""
    lines = spark_views.table_sql(name).splitlines()
    assert len(lines) <= LONGEST_SQL and lines[0].startswith("-- ") and max(map(len, lines)) <= 140


EMPTY = {
    "deletions": "run STRING, n INT, topic STRING, end_n INT",
    "refused_elections": "run STRING, n INT, record STRING, partition STRING, running_replicas ARRAY<INT>",
}


@pytest.mark.spark
def test_a_window_begins_many_records_after_the_election_of_its_leader(spark: Any) -> None:
    """A leader that stops 90,000 records after its election, and the next leader, which stops in another run, are joined."""
    states = [("r", 10, "a", 10, "t-0", 1), ("r", 100_500, "c", 100_500, "t-0", 2), ("s", 30, "d", 30, "t-0", 2)]
    spark.createDataFrame(
        states, "run STRING, n INT, record STRING, time_ms BIGINT, partition STRING, leader INT"
    ).createOrReplaceTempView("partition_states")
    lives = [
        ("r", 1, 1, "start"), ("r", 2, 2, "start"), ("r", 100_000, 1, "stop"), ("s", 1, 2, "start"), ("s", 70_000, 2, "stop"),
    ]  # fmt: skip
    events = [(run, n, "b", n, event, broker, None, None) for run, n, broker, event in lives]
    columns = "run STRING, n INT, record STRING, time_ms BIGINT, event STRING, broker INT, exit_code INT, partition STRING"
    spark.createDataFrame(events, columns).createOrReplaceTempView("broker_events")
    for name, schema in EMPTY.items():
        spark.createDataFrame([], schema).createOrReplaceTempView(name)
    found = spark.sql(spark_views.table_sql("offline_windows")).select("run", "n", "end_n", "led_after", "reason").collect()
    assert sorted(map(tuple, found)) == [("r", 100_000, 100_500, 2, "death"), ("s", 70_000, None, None, "death")]


def test_a_lab_shows_a_table_and_its_text() -> None:
    """A table has rows without Spark, and `table_sql` its text; another name is refused with a list."""
    lab = Lab(topics={"t": [[1, 2]]}, runs=None).run().kill(1).run()
    found = lab.tables.offline_windows()
    assert found[["partition", "led_before", "led_after", "reason"]].values.tolist() == [["t-0", 1, 2, "death"]]
    assert found["duration_ms"].tolist() == (found["end_ms"] - found["begin_ms"]).tolist()
    assert str(lab.tables.table_sql("offline_windows")) == spark_views.table_sql("offline_windows")
    with pytest.raises(UserError, match=r"There is no table 'outages': choose one of .*offline_windows"):
        lab.tables.table_sql("outages")


REASONS: dict[str, tuple[list[list[int]], Callable[[Lab], Lab]]] = {
    "death": ([[1, 2]], lambda lab: lab.kill(1).run()),
    "shutdown": ([[1]], lambda lab: lab.terminate(1).run()),
    "freeze": ([[1, 2]], lambda lab: lab.freeze(1)),
    "deletion": ([[1, 2]], lambda lab: lab.delete_topic("t").run()),
    "unclean election refused": ([[1, 2]], lambda lab: lab.kill(2).run().kill(1).run().start(2).run()),
}


@pytest.mark.parametrize("reason", REASONS)
def test_a_window_has_the_reason_of_its_begin(reason: str) -> None:
    """The only offline window of the run has this reason; a refused election names the record of the refusal."""
    assignment, play = REASONS[reason]
    lab = play(Lab(topics={"t": assignment}, runs=None).run())
    (window,) = rows_of_pandas(lab.tables.offline_windows())
    assert window["reason"] == reason
    assert (window["refused_record"] is not None) == (reason == "unclean election refused")


def test_a_replica_that_a_reassignment_has_removed_refuses_no_election() -> None:
    """The reason is the death of the only replica, although the broker of the former replica runs."""
    lab = Lab(topics={"t": [[1]]}, runs=None).run().reassign({"t-0": [2]}).run().kill(2).run()
    window = rows_of_pandas(lab.tables.offline_windows())[-1]
    assert (window["reason"], window["led_before"], window["refused_record"]) == ("death", 2, None)


def test_every_table_of_pandas_is_a_table_of_spark() -> None:
    """The tables that pandas makes have the names of Spark's."""
    assert set(TABLES) <= set(spark_views.TABLES)


def test_a_journal_has_the_tables_of_its_run(tmp_path: Path) -> None:
    """A run that is read from its file has the tables that the lab had."""
    lab = Lab(topics={"t": [[1, 2]]}, runs=None).run().kill(1).run()
    lab.save(tmp_path / "run.jsonl")
    read = journal_file.read(tmp_path / "run.jsonl")
    for name in TABLES:
        assert rows_of_pandas(table(read, "run", name)) == rows_of_pandas(table(lab.records, "run", name))
