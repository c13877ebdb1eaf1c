"""`kcontrol pipeline runs --redact`: no name of the runs is left in any byte of the tables, and the tables say the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from rich.console import Console
from typer.testing import CliRunner

from kcontrol import Lab
from kcontrol.cli import app
from kcontrol.core.errors import UserError
from kcontrol.journal import journal_file
from kcontrol.lab.history.history_tables import TABLES, table
from kcontrol.pipeline import pipeline, pipeline_report, spark_views
from kcontrol.pipeline.redaction import journals, stable_names
from kcontrol.pipeline.redaction.stable_names import Redaction
from kcontrol.pipeline.run_files import JournalOfRun, journals_of
from tests.pipeline.comparison import rows_of_pandas
from tests.pipeline.few_tables import few_tables
from tests.pipeline.random_runs import random_run

REDACTION = Redaction(("topic", "host", "client"), b"a key")
TOPICS, CLIENTS, HOSTS = ("payroll", "payroll-eu"), ("anna", "benito", "accountants", "desk-7"), ("127.0.0.1",)
NAMES = (*TOPICS, *CLIENTS, *HOSTS)
WORD = "bookkeeper"
"""A word of a text that is committed with an offset, no name of a topic or client."""
RUN = "20260101-101500-simulated"
WHOLE = ("topic", "group_id", "client_id", "members")
GROUP = {"group.id": "accountants"}


def played(topics: tuple[str, str], consumers: dict[str, Any]) -> Lab:
    """Return a run with consumers that join, commit and rebalance, a topic that is deleted, and a reassignment."""
    first, second = topics
    every = {first: [[1, 2]], second: [[1, 2], [2, 3]], "__consumer_offsets": [[1, 2, 3]]}
    lab = Lab(topics=every, consumers=consumers, data=True, runs=None).run()
    for name in consumers:
        lab.step(("join", name))
    lab.run(alive=True)
    lab.step(("produce", 1, f"{first}-0", f"a value about {first}", "all")).run(alive=True)
    lab.step(("commit", next(iter(consumers)), f"{first}-0", 1, f"by the {WORD} of payroll")).run(alive=True)
    lab.kill(1).run(alive=True).delete_topic(second).run(alive=True)
    return lab.step(("reassign", 2, {f"{first}-0": (2, 3)})).run(alive=True)


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of a run whose topics, group and clients have names of their own, with a damaged line that has names too."""
    path = tmp_path_factory.mktemp("runs") / f"{RUN}.jsonl"
    static = GROUP | {"group.instance.id": "desk-7", "topics": ["payroll", "payroll-eu"]}
    played(("payroll", "payroll-eu"), {"anna": GROUP | {"topics": ["payroll"]}, "benito": static}).save(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:9], b'{"kind": "payroll of anna\n', *lines[9:]]))
    return path


def copied(path: Path, folder: Path, redaction: Redaction = REDACTION) -> JournalOfRun:
    """Return the copy of a journal with stable names."""
    found, refused = journals_of([path])
    assert refused == []
    (copy,) = journals.redacted(found, redaction, folder)
    return copy


def left(data: bytes, names: Sequence[str] = NAMES) -> list[str]:
    """Return the names that these bytes have as text or as hexadecimal text."""
    return [name for name in names if name.encode() in data or name.encode().hex().encode() in data]


def test_no_name_is_left_in_a_copy(named: Path, tmp_path: Path) -> None:
    """A copy of a journal has as many lines, and no byte of a name, in damaged lines and in bytes of clients neither."""
    assert left(named.read_bytes(), (*NAMES, WORD)) == [*NAMES, WORD]
    data = copied(named, tmp_path).path.read_bytes()
    assert left(data, (*NAMES, WORD)) == [] and data.count(b"\n") == named.read_bytes().count(b"\n")


def test_each_kind_is_replaced_alone(named: Path, tmp_path: Path) -> None:
    """With one kind of names, the names of the other kinds stay."""
    for kind, gone in (("topic", TOPICS), ("client", CLIENTS), ("host", HOSTS)):
        data = copied(named, tmp_path / kind, Redaction((kind,), b"a key")).path.read_bytes()
        assert sorted(left(data)) == sorted({*NAMES} - {*gone})


def test_a_topic_of_one_letter_is_replaced_everywhere(tmp_path: Path) -> None:
    """A topic "t" is replaced as a key and as an item of a list too, and not inside of words."""
    fields = '{"field": "topics", "put": {"t": ["t", "text"]}, "partition": "t-0"}'
    path = tmp_path / "run.jsonl"
    path.write_text(f'{{"kind": "update", "fields": {fields}}}\n')
    (copy,) = journals.redacted([JournalOfRun(path, "run", "virtual", None)], REDACTION, tmp_path / "copies")
    topic = REDACTION.stable("topic", "t")
    expected = {"field": "topics", "put": {topic: [topic, "text"]}, "partition": f"{topic}-0"}
    assert json.loads(copy.path.read_text())["fields"] == expected


@pytest.mark.parametrize(
    ("kind", "text"),
    [("topic", "/brokers/topics/{}/partitions"), ("topic", "/admin/delete_topics/{}"), ("client", "/consumers/{}/offsets"),
     ("client", "/config/clients/{}"), ("host", "PLAINTEXT://{}:9092")],
)  # fmt: skip
def test_a_name_that_only_a_path_or_an_address_has_is_replaced(tmp_path: Path, kind: str, text: str) -> None:
    """A name that a journal has in the path of a znode or in an address alone is replaced, there and in other texts."""
    path = tmp_path / "run.jsonl"
    texts = [text, "a text about {}"]
    path.write_text(f"{json.dumps({'kind': 'zk', 'fields': {'ops': [place.format('cellar') for place in texts]}})}\n")
    (copy,) = journals.redacted([JournalOfRun(path, "run", "virtual", None)], REDACTION, tmp_path / "copies")
    expected = [place.format(REDACTION.stable(kind, "cellar")) for place in texts]
    assert json.loads(copy.path.read_text())["fields"]["ops"] == expected


def test_the_text_in_an_action_commit_is_replaced(tmp_path: Path) -> None:
    """The text after the offset in an action `commit` becomes a stable text, with words that are no names too."""
    path, text = tmp_path / "run.jsonl", f"by the {WORD}"
    path.write_text(f"{json.dumps({'kind': 'act', 'fields': {'action': ['commit', 'anna', 'payroll-0', 1, text]}})}\n")
    (copy,) = journals.redacted([JournalOfRun(path, "run", "virtual", None)], REDACTION, tmp_path / "copies")
    assert json.loads(copy.path.read_text())["fields"]["action"][-1] == f"text-{REDACTION.letters(text)}"


def test_a_line_that_spark_does_not_read_has_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a line above the limit only its end is in the copy; the lines beside it are copied."""
    monkeypatch.setattr(journals, "LONGEST_LINE_BYTES", 20)
    (tmp_path / "run.jsonl").write_bytes(b"short\n" + b"payroll" * 9 + b"\nlast")
    assert list(journals._lines(tmp_path / "run.jsonl")) == [b"short\n", b"\n", b"last"]


def words_as_names() -> Lab:
    """Return a run whose topics, groups and clients have words of journals as names; one group's name looks like bytes."""
    return played(("leader", "partition"), {"value": {"group.id": "group"}, "state": {"group.id": "deadbeefcafe01"}})


MADE: dict[str, Callable[[], Lab]] = {"words": words_as_names, "random": lambda: random_run(5)}


@pytest.mark.parametrize("name", MADE)
def test_the_tables_of_a_copy_say_the_same(name: str, tmp_path: Path) -> None:
    """Every table of a copy has the rows of the run with stable names: each reference to a topic or member is still right."""
    path = tmp_path / "run.jsonl"
    MADE[name]().save(path)
    copy = journal_file.read(copied(path, tmp_path / "copies").path)
    original = journal_file.read(path)
    names = journals.names_of(REDACTION)
    for record in original:
        journals.learn(names, {"kind": record.kind, "fields": record.fields})

    def stable(column: str, value: Any) -> Any:
        if column == "metadata" and value:
            return f"text-{REDACTION.letters(value)}"
        if isinstance(value, list):
            return [stable(column, item) for item in value]
        if not isinstance(value, str) or column in ("rule", "reason", "kind", "state", "ended_in", "source", "target"):
            return value
        member = stable_names.MEMBER_ID.fullmatch(value)
        return f"{names.of(member[1])}-{member[2]}" if member else names.of(value) if column in WHOLE else names.replaced(value)

    for made in (made for made in TABLES if made != "journal"):
        rows = rows_of_pandas(table(original, "run", made))
        expected = [{column: stable(column, value) for column, value in row.items()} for row in rows]
        # Rows, and lists of members, are in the order of names, and stable names have another order.
        found = [in_order(row) for row in rows_of_pandas(table(copy, "run", made))]
        assert sorted(found, key=repr) == sorted(map(in_order, expected), key=repr), made


def in_order(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its list of members in order."""
    return row | ({"members": sorted(row["members"])} if row.get("members") else {})


def test_names_of_runs_are_replaced_with_hosts() -> None:
    """A file name that a lab gives stays; any other name of a run, and its folder, get stable names."""
    letters = REDACTION.letters
    assert journals.run_name(RUN, REDACTION) == RUN
    assert journals.run_name(f"vault/{RUN}", REDACTION) == f"folder-{letters('vault')}/{RUN}"
    assert journals.run_name("vault", REDACTION) == f"run-{letters('vault')}"
    assert journals.run_name("vault", Redaction(("topic",), b"k")) == "vault"


@pytest.mark.spark
@pytest.mark.slow
def test_no_name_is_left_in_the_bytes_of_the_tables(named: Path, tmp_path: Path, spark: Any) -> None:
    """No file of the tables or the report has a name in it or as its own; a later call adds runs with equal stable names."""
    out, later = tmp_path / "tables", tmp_path / "vault.jsonl"
    plain, chosen = tmp_path / "plain", pipeline.Chosen(topic="payroll")
    written = pipeline.write_runs(spark, [named], out, chosen=chosen, redact=REDACTION)
    assert [item.reason for item in written.refused] == [f"The tables leave out 1 damaged line of {named}."]
    assert written.rows == pipeline.write_runs(spark, [named], plain, chosen=chosen).rows
    assert written.rows["leaderships"] and written.rows["commits"] and written.rows["member_lives"]
    later.write_bytes(named.read_bytes())
    with few_tables():
        pipeline.write_runs(spark, [later], out, chosen=chosen, redact=REDACTION)
    for path in (path for path in out.rglob("*") if path.is_file()):
        assert left(path.read_bytes()) == [] and "vault" not in str(path.relative_to(out)), path
    rows = {name: parquet.read_table(out / name).to_pylist() for name in spark_views.TABLES}
    assert left(json.dumps(rows, default=str).encode()) == []
    pipeline_report.report(out, tmp_path / "report.html", Console(quiet=True))
    assert left((tmp_path / "report.html").read_bytes()) == []
    assert {row["run"] for row in rows["journal"]} == {RUN, f"run-{REDACTION.letters('vault')}"}
    commits = {(row["group_id"], row["partition"]) for row in rows["commits"]}
    assert commits == {(REDACTION.stable("client", "accountants"), f"{REDACTION.stable('topic', 'payroll')}-0")}
    with pytest.raises(UserError, match="has tables with --redact clients,hosts,topics"):
        pipeline.write_runs(spark, [named], out)


def test_tables_of_other_names_are_refused_before_spark_starts(
    named: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--redact` into a folder of tables without stable names is one sentence."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    pipeline.claim(tmp_path / "out")
    (tmp_path / "out" / "journal").mkdir()
    done = CliRunner().invoke(app, ["pipeline", "runs", str(named), "--out", str(tmp_path / "out"), "--redact", "topics"])
    assert isinstance(done.exception, UserError) and "has tables without --redact: leave out" in str(done.exception)
