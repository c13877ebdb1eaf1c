"""The tables of many runs in Parquet files: repeated, late and cut files, folders of others, and processes that are killed."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from typer.testing import CliRunner

from kcontrol import Lab
from kcontrol.cli import app
from kcontrol.core.errors import UserError
from kcontrol.journal import journal_file
from kcontrol.pipeline import pipeline, spark_views
from kcontrol.pipeline.report.tables import read_tables
from kcontrol.pipeline.run_files import in_time, journals_of
from tests.pipeline.few_tables import few_tables
from tests.pipeline.kills import COMMAND

Tables = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs of two days, and a run of brokers 0 and 1 without a day."""
    folder = tmp_path_factory.mktemp("runs of two days")
    for day, killed in (("20260101", 1), ("20260102", 2)):
        lab = Lab(topics={"t": [[1, 2]]}, runs=None).run().kill(killed).run()
        lab.save(folder / f"{day}-101500-simulated.jsonl")
    Lab([0, 1], topics={"t": [[0, 1]]}, runs=None).kill(0).run().save(folder / "undated.jsonl")
    return folder


@pytest.fixture
def few() -> Iterator[None]:
    """A process that writes few tables, which have all ways in which a table is written."""
    with few_tables():
        yield


@pytest.fixture(scope="module")
def at_once(spark: Any, days: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of few tables of the runs in `days`, all read by one call."""
    out = tmp_path_factory.mktemp("tables of two days") / "at once"
    with few_tables():
        pipeline.write_runs(spark, [days], out)
    return out


def tables_in(out: Path) -> Tables:
    return {name: sorted(parquet.read_table(out / name).to_pylist(), key=repr) for name in spark_views.TABLES}


def partitions_in(out: Path) -> set[str]:
    return {str(path.relative_to(out)) for path in out.glob("*/day=*")}


@pytest.mark.spark
@pytest.mark.slow
def test_a_command_leaves_no_temporary_files(days: Path, tmp_path: Path) -> None:
    """After a command the folder for the temporary files of Python and of Java is empty."""
    place = tmp_path / "temporary"
    place.mkdir()
    env = os.environ | {"TMPDIR": str(place), "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={place}"}
    subprocess.run([*COMMAND, "pipeline", "runs", str(days), "--out", str(tmp_path / "out")], env=env, check=True)
    assert list(place.iterdir()) == []


@pytest.mark.usefixtures("few")
@pytest.mark.spark
@pytest.mark.slow
def test_runs_that_are_read_late_twice_or_in_part_are_counted_once(spark: Any, days: Path, at_once: Path, tmp_path: Path) -> None:
    """A folder that was read in pieces has the rows and partitions of a folder that was read at once."""
    pieces, cut = tmp_path / "pieces", tmp_path / "cut"
    first, second, third = sorted(days.iterdir())
    cut.mkdir()
    text = first.read_bytes()
    (cut / first.name).write_bytes(text[: len(text) // 2])
    pipeline.write_runs(spark, [cut, third], pieces)
    part = tables_in(pieces)["journal"]
    assert 0 < len([row for row in part if row["run"] == first.stem]) < len(journal_file.read(first))
    pipeline.write_runs(spark, [second, days, first], pieces)
    pipeline.write_runs(spark, [cut], pieces)
    expected = tables_in(at_once)
    assert tables_in(pieces) == expected
    assert partitions_in(pieces) == partitions_in(at_once)
    assert {path.split("=")[1] for path in partitions_in(at_once)} == {"2026-01-01", "2026-01-02", "unknown"}
    assert len(expected["journal"]) == sum(len(journal_file.read(path)) for path in days.iterdir())
    assert not (pieces / pipeline.NEW).exists() and not (pieces / pipeline.OLD).exists()


@pytest.mark.usefixtures("few")
@pytest.mark.spark
@pytest.mark.slow
def test_a_damaged_line_is_reported(spark: Any, days: Path, tmp_path: Path) -> None:
    """Damaged lines, a cut line and a line of 200 MB are counted in one sentence; the tables have the other records."""
    lines = min(days.iterdir()).read_bytes().splitlines(keepends=True)
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes(b"".join([*lines[:5], lines[5][:40] + b"\n", b"x" * (200 * 2**20) + b"\n", *lines[6:]]))
    written = pipeline.write_runs(spark, [damaged], tmp_path / "out")
    assert [item.reason for item in written.refused] == [f"The tables leave out 2 damaged lines of {damaged}."]
    assert written.rows["journal"] == len(lines) - 2  # without the damaged line and the last line, which counts the records


@pytest.mark.usefixtures("few")
@pytest.mark.spark
@pytest.mark.slow
def test_a_call_after_a_killed_publication_writes_all_tables(
    spark: Any, days: Path, at_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a process ends between two tables of the publication, the next call writes all tables, also without a new record."""
    out = tmp_path / "out"
    first, *_ = sorted(days.iterdir())
    pipeline.write_runs(spark, [first], out)
    with monkeypatch.context() as patched:
        steps(patched, 3)  # `journal` is in place, and the next table is moved away
        with pytest.raises(Killed):
            pipeline.write_runs(spark, [days], out)
    (tmp_path / first.name).write_bytes(first.read_bytes()[:-200])
    pipeline.write_runs(spark, [tmp_path / first.name], out)
    assert tables_in(out) == tables_in(at_once)


# ---------------------------------------------------------------- which files are which runs


def test_a_link_to_a_journal_is_no_further_run(tmp_path: Path) -> None:
    """A folder with a journal and a link to it, whose name comes first, has one run with the journal's own name."""
    Lab(1, runs=None).save(tmp_path / "mine.jsonl")
    (tmp_path / "latest.jsonl").symlink_to("mine.jsonl")
    found, refused = journals_of([tmp_path])
    assert ([(journal.run, journal.path.name) for journal in found], refused) == ([("mine", "mine.jsonl")], [])


def test_copies_and_cut_files_are_one_run(days: Path, tmp_path: Path) -> None:
    """Of a journal, its copy and its beginning in three folders the longest is read, under the name of the file."""
    whole = min(days.iterdir())
    for folder, size in (("copy", None), ("cut", 1000)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / whole.name).write_bytes(whole.read_bytes()[:size])
    found, refused = journals_of([whole, tmp_path / "copy", tmp_path / "cut"])
    assert [journal.run for journal in found] == [whole.stem] and refused == []
    assert found[0].path.read_bytes() == whole.read_bytes()


def test_different_runs_of_one_name_have_their_folders_names(tmp_path: Path) -> None:
    """Two runs in files of one name are two runs, each with the name of its folder."""
    for number in (1, 2):
        (tmp_path / f"class {number}").mkdir()
        Lab(number, runs=None).save(tmp_path / f"class {number}" / "run.jsonl")
    found, _ = journals_of([tmp_path / "class 1", tmp_path / "class 2"])
    assert [journal.run for journal in found] == ["class 1/run", "class 2/run"]


def test_runs_in_folders_of_a_class_have_the_names_of_their_learners(tmp_path: Path) -> None:
    """The journals below a folder are read, and each run has the path from this folder, also a run that a neighbour has too."""
    for number, place in enumerate(("anna/runs", "bert/runs", "cleo/runs/old", "."), 1):
        (tmp_path / "class" / place).mkdir(parents=True, exist_ok=True)
        Lab(min(number, 2), runs=None).save(tmp_path / "class" / place / "run.jsonl")
    found, refused = journals_of([tmp_path / "class"])
    assert [journal.run for journal in found] == ["anna/runs/run", "bert/runs/run", "cleo/runs/old/run", "run"] and refused == []


def test_classes_with_learners_of_one_name_have_the_names_of_the_classes(tmp_path: Path) -> None:
    """Two different runs with one path below two folders are named by these folders too."""
    for number in (1, 2):
        (tmp_path / f"class {number}" / "anna").mkdir(parents=True)
        Lab(number, runs=None).save(tmp_path / f"class {number}" / "anna" / "run.jsonl")
    found, _ = journals_of([tmp_path / "class 1", tmp_path / "class 2"])
    assert [journal.run for journal in found] == ["class 1/anna/run", "class 2/anna/run"]


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"\x00\xff", "not a journal"), (b"", "not a journal"), (b'{"kind":"act","at_ms":0,"fields":{}}\n', "not a journal"),
     (b'{"kind":"run","at_ms":0,"fields":{"journal_version":9}}\n', "written by a later kcontrol; this one reads version 1")],
)  # fmt: skip
def test_a_file_that_is_no_journal_is_refused(days: Path, tmp_path: Path, content: bytes, words: str) -> None:
    """A file that is no journal, or that a later kcontrol has written, is refused in one sentence; the others are read."""
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_bytes(content)
    found, refused = journals_of([days, wrong])
    assert len(found) == 3
    assert [(item.path, words in item.reason) for item in refused] == [(wrong, True)]


# ---------------------------------------------------------------- a part of the runs

JANUARY_2 = datetime(2026, 1, 2)  # noqa: DTZ001 - the names of files have the time of the machine


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [(None, None, 3), (JANUARY_2, None, 1), (None, JANUARY_2, 1), (JANUARY_2.replace(hour=10, minute=15), None, 1),
     (None, JANUARY_2.replace(hour=10, minute=15), 1), (JANUARY_2, JANUARY_2, 0)],
)  # fmt: skip
def test_runs_are_chosen_by_the_time_at_which_they_began(
    days: Path, since: datetime | None, until: datetime | None, found: int
) -> None:
    """A run that began at --from is read, a run that began at --to is not; a run without a time is read without limits only."""
    journals, _ = journals_of([days])
    assert len(in_time(journals, since, until)) == found


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "2026-01-01T10:00+01:00", ""])
def test_a_text_that_is_no_time_is_refused(days: Path, tmp_path: Path, text: str) -> None:
    """The command refuses such a text with one sentence and exit status 1, and makes no folder."""
    done = CliRunner().invoke(app, ["pipeline", "runs", str(days), "--out", str(tmp_path / "out"), "--from", text])
    assert done.exit_code == 1 and "such as 2026-01-31 or 2026-01-31T09:30" in str(done.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.spark
def test_a_time_without_runs_is_refused(spark: Any, days: Path, tmp_path: Path) -> None:
    """If no run began in the chosen time, the sentence says so, and no folder is made."""
    with pytest.raises(UserError, match="No run began in this time, of 3 runs: choose"):
        pipeline.write_runs(spark, [days], tmp_path / "out", chosen=pipeline.Chosen(until=datetime(2020, 1, 1)))  # noqa: DTZ001
    assert not (tmp_path / "out").exists()


@pytest.mark.spark
@pytest.mark.slow
def test_a_topic_is_a_part_of_the_tables(spark: Any, tmp_path: Path) -> None:
    """With a topic the tables have its rows and the rows that name none; `journal` is whole, and the next call has all rows."""
    lab = Lab(topics={"t": [[1, 2]], "t-0": [[1, 2], [1, 3]]}, runs=None).kill(1).run().delete_topic("t-0").run()
    lab.save(tmp_path / "run.jsonl")
    whole, part = tmp_path / "whole", tmp_path / "part"
    pipeline.write_runs(spark, [tmp_path / "run.jsonl"], whole)
    pipeline.write_runs(spark, [tmp_path / "run.jsonl"], part, chosen=pipeline.Chosen(topic="t"))
    every, found = tables_in(whole), tables_in(part)
    for name, rows in every.items():
        assert found[name] == [row for row in rows if _topic_of(row) in (None, "t")], name
    assert found["offline_windows"] and found["deletions"] == [] != every["deletions"]
    with few_tables():
        pipeline.write_runs(spark, [tmp_path / "run.jsonl"], part)
        assert tables_in(part) == {name: every[name] for name in spark_views.TABLES}


def _topic_of(row: dict[str, Any]) -> str | None:
    named = row.get("partition")
    return str(named).rpartition("-")[0] if named is not None else row.get("topic")


# ---------------------------------------------------------------- a full disk, and no permission


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS])
def test_an_error_of_the_file_system_is_one_sentence(
    days: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    """A folder that cannot be made is one sentence with the reason of the system, before Spark starts."""

    def mkdir(*_: Any, **__: Any) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(Path, "mkdir", mkdir)
    done = CliRunner().invoke(app, ["pipeline", "runs", str(days), "--out", str(tmp_path / "out")])
    assert done.exit_code == 1 and isinstance(done.exception, UserError)
    assert f"cannot be written to {tmp_path / 'out'}: {os.strerror(error)}; make room" in str(done.exception)


@pytest.mark.parametrize("text", ["java.io.IOException: No space left on device", "Mkdirs failed to create file:/x"])
def test_an_error_in_the_words_of_spark_is_one_sentence(tmp_path: Path, text: str) -> None:
    """The text of an error of Spark about the file system becomes the sentence; the unfinished tables are deleted, no others."""
    pipeline.claim(tmp_path)
    for name in (pipeline.NEW, "journal"):
        (tmp_path / name).mkdir()
    with pytest.raises(UserError, match="make room, or name another folder"), pipeline.sentences(tmp_path):
        raise RuntimeError(text)
    assert not (tmp_path / pipeline.NEW).exists() and (tmp_path / "journal").exists()


def test_any_other_error_stays_what_it_is(tmp_path: Path) -> None:
    """An error that is not about the file system is raised as it is."""
    with pytest.raises(RuntimeError, match="division"), pipeline.sentences(tmp_path):
        raise RuntimeError("division by zero")


# ---------------------------------------------------------------- the folder of the tables


def test_a_folder_with_other_files_is_refused_and_kept(days: Path, tmp_path: Path) -> None:
    """The command refuses a folder that holds other files with one sentence and exit status 1, and changes nothing in it."""
    (tmp_path / "thesis.txt").write_text("mine")
    done = CliRunner().invoke(app, ["pipeline", "runs", str(days), "--out", str(tmp_path)])
    assert done.exit_code == 1 and isinstance(done.exception, UserError)
    assert str(done.exception) == f"{tmp_path} holds other files, such as thesis.txt: name a new or empty folder for the tables."
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("thesis.txt", "mine")]


def test_a_file_beside_the_tables_is_refused(tmp_path: Path) -> None:
    """A folder of tables that has got another file is refused, so that this file is not deleted."""
    pipeline.claim(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"holds notes\.txt beside the tables"):
        pipeline.claim(tmp_path)


def test_tables_of_a_later_version_stay_as_they_are(tmp_path: Path) -> None:
    """A folder of tables that a later kcontrol has written is refused in one sentence, by its writers and by the report."""
    (tmp_path / "new table").mkdir()
    (tmp_path / pipeline.MARK).write_text('{"kcontrol": "tables of runs", "version": 2}')
    for read in (pipeline.claim, read_tables):
        with pytest.raises(UserError) as problem:
            read(tmp_path)
        assert str(problem.value) == f"{tmp_path} was written by a later kcontrol; this one reads version 1: update kcontrol."
    assert sorted(path.name for path in tmp_path.iterdir()) == [pipeline.MARK, "new table"]


def test_a_folder_of_a_process_that_ended_at_its_first_write_is_taken(tmp_path: Path) -> None:
    """A folder that holds only the unfinished mark of a killed process is no folder of other files."""
    (tmp_path / f"{pipeline.MARK}.new").write_text("{")
    pipeline.claim(tmp_path)
    assert pipeline._mark(tmp_path) == pipeline.FORMAT


def test_a_file_is_no_folder_for_tables(tmp_path: Path) -> None:
    """A file as `--out` is refused in one sentence."""
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UserError, match="is a file: name a new or empty folder"):
        pipeline.claim(tmp_path / "out")


class Killed(BaseException):
    """The end of the process."""


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A folder with former tables in place and the next ones written, each a folder with one file."""
    pipeline.claim(tmp_path)
    for place, text in ((tmp_path, "former"), (tmp_path / pipeline.NEW, "next")):
        for name in spark_views.TABLES:
            (place / name).mkdir(parents=True)
            (place / name / "part").write_text(text)
    return tmp_path


def steps(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """Let the process end before the renaming with this number."""
    rename, seen = Path.rename, iter(range(limit + 1))

    def counted(path: Path, to: Path) -> Path:
        if next(seen) == limit:
            raise Killed
        return rename(path, to)

    monkeypatch.setattr(Path, "rename", counted)


@pytest.mark.parametrize("limit", range(2 * len(spark_views.TABLES)))
def test_a_process_that_ends_between_two_tables_loses_no_record(
    published: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """After an end before any renaming, the next call has the records of the journal, and no file that is no table."""
    with monkeypatch.context() as patched:
        steps(patched, limit)
        with pytest.raises(Killed):
            pipeline.publish(published)
    pipeline.claim(published)
    assert (published / "journal" / "part").read_text() == ("former" if limit < 2 else "next")
    assert {path.name for path in published.iterdir()} <= {pipeline.MARK, *spark_views.TABLES}
