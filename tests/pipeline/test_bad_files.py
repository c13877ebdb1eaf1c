"""Input that is empty, huge, closed, or of another program: the commands print a sentence or write rejected rows."""

from __future__ import annotations

import errno
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kcontrol import Lab
from kcontrol.cli import app
from kcontrol.core.errors import UserError
from kcontrol.pipeline import pipeline, pipeline_report
from kcontrol.pipeline.follow.followed_files import look
from kcontrol.pipeline.logs.files import LONG, Damaged, LogFile, NoLog, examine, log_files
from kcontrol.pipeline.offsets import offset_tables
from kcontrol.pipeline.offsets.segments import Segment
from kcontrol.pipeline.run_files import Refused, journals_of
from tests.parts import ROOT
from tests.pipeline.log_rows import rows_of

CLOSED = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
MB = 2**20


@pytest.mark.parametrize(
    ("name", "words"), [("runs", "There is no journal in"), ("logs", "There is no log in"), ("offsets", "There is no segment in")]
)
def test_an_empty_folder_is_refused(tmp_path: Path, name: str, words: str) -> None:
    """Each command refuses an empty folder in one sentence with exit status 1, before Spark starts and a folder is made."""
    (tmp_path / "empty").mkdir()
    done = CliRunner().invoke(app, ["pipeline", name, str(tmp_path / "empty"), "--out", str(tmp_path / "out")])
    assert done.exit_code == 1 and isinstance(done.exception, UserError)
    assert f"{words} {tmp_path / 'empty'}" in str(done.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "words"), [("runs", "There is no journal in"), ("logs", "There is no log in"), ("offsets", "There is no segment in")]
)
def test_a_folder_of_zip_files_is_refused_with_the_remedy(tmp_path: Path, name: str, words: str) -> None:
    """A folder that has only ZIP files is refused, and the sentence says which files to unpack."""
    for number in (1, 2):
        (tmp_path / f"{number}.zip").write_bytes(b"PK\x03\x04rest")
    done = CliRunner().invoke(app, ["pipeline", name, str(tmp_path), "--out", str(tmp_path / "out")])
    assert str(done.exception) == f"{words} {tmp_path}: unpack the ZIP files 1.zip and 2.zip first."


def test_the_help_says_how_clusters_are_named() -> None:
    """The help of `pipeline logs` and docs/pipeline.md say that the folder of each cluster is a PATH of its own."""
    sentence = "name the folder of each cluster as a path of its own"
    for words in (CliRunner().invoke(app, ["pipeline", "logs", "--help"]).output, (ROOT / "docs" / "pipeline.md").read_text()):
        assert sentence in " ".join(words.split()).lower()


@pytest.mark.parametrize("place", ["PATH", "--out"])
@pytest.mark.parametrize("command", ["runs", "logs", "offsets", "report"])
def test_a_path_in_a_closed_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, place: str) -> None:
    """If the system does not say whether a path exists, each command gives the reason in one sentence, and creates no folder."""
    closed, stat, file = tmp_path / "closed" / "of a learner", Path.stat, tmp_path / f"{'0' * 20}.log"
    Lab(runs=None).save(file)

    def stat_of(path: Path, **given: Any) -> Any:
        if path.is_relative_to(closed):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, **given)

    monkeypatch.setattr(Path, "stat", stat_of)
    paths = (closed, tmp_path / "out") if place == "PATH" else (file, closed)
    done = CliRunner().invoke(app, ["pipeline", command, str(paths[0]), "--out", str(paths[1])])
    assert done.exit_code == 1 and isinstance(done.exception, UserError)
    sentence = f"{closed} cannot be read: {CLOSED.strerror}; make it readable, or name another path."
    assert str(done.exception) == sentence or (command, place) == ("report", "--out")  # it has tables to read first
    assert not (tmp_path / "out").exists()


def test_a_folder_below_a_file_is_refused(tmp_path: Path) -> None:
    """A value of --out below a file names this file and says that a folder is needed."""
    (tmp_path / "x.jsonl").touch()
    (tmp_path / "file").touch()
    done = CliRunner().invoke(app, ["pipeline", "runs", str(tmp_path / "x.jsonl"), "--out", str(tmp_path / "file" / "out")])
    assert str(done.exception) == f"{tmp_path / 'file'} is a file: name a new or empty folder for the tables."


@pytest.mark.spark
@pytest.mark.parametrize(("name", "file"), [("runs", "x.jsonl"), ("logs", "x.log")])
def test_a_refused_call_leaves_no_folder(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, file: str
) -> None:
    """A foreign journal and a binary log are refused, and the folders that the call has created are removed."""
    monkeypatch.setattr(pipeline_report, "stop_spark", lambda: None)
    (tmp_path / file).write_bytes(bytes(range(8)) * 99)
    done = CliRunner().invoke(app, ["pipeline", name, str(tmp_path / file), "--out", str(tmp_path / "new" / "out")])
    assert done.exit_code == 1 and isinstance(done.exception, UserError)
    assert [path.name for path in tmp_path.iterdir()] == [file]


def test_a_refused_call_leaves_what_was_there(tmp_path: Path) -> None:
    """A folder that existed before a refused call stays, with its mark if an earlier call has written the mark."""
    with pytest.raises(UserError), pipeline.claimed(tmp_path):
        raise UserError("No.")
    assert list(tmp_path.iterdir()) == []
    pipeline.claim(tmp_path)
    with pytest.raises(UserError), pipeline.claimed(tmp_path):
        raise UserError("No.")
    assert [path.name for path in tmp_path.iterdir()] == [pipeline.MARK]


@pytest.mark.parametrize("name", ["runs", "logs", "offsets"])
def test_limits_that_no_time_meets_are_refused(tmp_path: Path, name: str) -> None:
    """A --from that is not before --to gives one sentence with both values, before a file is read."""
    limits = "--from", "2026-02-01", "--to", "2026-02-01"
    done = CliRunner().invoke(app, ["pipeline", name, str(tmp_path), "--out", str(tmp_path / "out"), *limits])
    assert done.exit_code == 1 and isinstance(done.exception, UserError)
    assert str(done.exception) == "--from 2026-02-01 is not before --to 2026-02-01: choose a --from before --to."


def test_a_segment_that_is_a_zip_file_is_refused(tmp_path: Path) -> None:
    """`pipeline offsets` refuses a ZIP file before it makes a folder of tables."""
    (tmp_path / "x.zip").write_bytes(b"PK\x03\x04rest")
    done = CliRunner().invoke(app, ["pipeline", "offsets", str(tmp_path / "x.zip"), "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, UserError) and not (tmp_path / "out").exists()
    assert str(done.exception) == f"{tmp_path / 'x.zip'} is a ZIP file: unpack it first."


def test_a_journal_that_is_a_zip_file_is_refused(tmp_path: Path) -> None:
    """`pipeline runs` says of a ZIP file that it must be unpacked, not that its first line is wrong."""
    path = tmp_path / "x.zip"
    path.write_bytes(b"PK\x03\x04rest")
    assert journals_of([path]) == ([], [Refused(path, f"{path} is a ZIP file: unpack it first.")])


def test_a_journal_without_permission_is_refused_and_the_others_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal that the system does not open is refused with the reason of the system; the other journals are found."""
    closed, opened = tmp_path / "closed.jsonl", Path.open
    Lab(runs=None).save(tmp_path / "opened.jsonl")
    closed.touch()

    def open_if_permitted(path: Path, *arguments: Any, **named: Any) -> Any:
        if path == closed:
            raise CLOSED
        return opened(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", open_if_permitted)
    found, refused = journals_of([tmp_path])
    assert refused == [Refused(closed, f"{closed} cannot be read: {CLOSED.strerror}.")]
    assert [journal.run for journal in found] == ["opened"]


def test_a_folder_without_permission_is_named_and_the_others_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that the system does not list, and a file whose folder is closed, are no logs with the reason of the system."""
    folder, file, listed, opened = tmp_path / "closed", tmp_path / "half" / "server.log", os.scandir, Path.open
    for path in (folder, file.parent, tmp_path / "open"):
        path.mkdir()
        (path / "server.log").touch()

    def list_if_permitted(path: Any) -> Any:
        if Path(path) == folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return listed(path)

    def open_if_permitted(path: Path, *arguments: Any, **named: Any) -> Any:
        if path in (folder, file):
            raise CLOSED
        return opened(path, *arguments, **named)

    monkeypatch.setattr(os, "scandir", list_if_permitted)
    monkeypatch.setattr(Path, "open", open_if_permitted)
    found = [examine(path, tmp_path / "copies") for path in log_files([tmp_path])]
    closed = [NoLog(path, f"{path} cannot be read: {CLOSED.strerror}.") for path in (folder, file)]
    assert found == [*closed, LogFile(tmp_path / "open" / "server.log", tmp_path / "open" / "server.log", 0, [])]
    assert look([tmp_path], tmp_path / "out", [], 1).refused == closed


def test_a_segment_without_permission_is_a_rejected_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All bytes of a segment that the system does not open are one rejected row with the reason of the system."""

    def closed(_segment: Segment) -> Any:
        raise CLOSED

    monkeypatch.setattr(offset_tables, "rows", closed)
    path = tmp_path / "00000000000000000000.log"
    ((file, _, position, *row),) = offset_tables._tuples(Segment(path, 100, 7), str(path))
    assert (file, position) == (str(path), 0)
    assert {100, "rejected", f"{path} cannot be read: {CLOSED.strerror}."} <= set(row)


def test_a_line_of_200_mb_needs_little_memory(tmp_path: Path) -> None:
    """A log with a line of 200 MB is examined and copied without this line; the memory stays below 16 MB."""
    log = tmp_path / "server.log"
    with log.open("wb") as file:
        file.write(b"first\n")
        for _ in range(200):
            file.write(b"x" * MB)
        file.write(b"\nlast\n")
    tracemalloc.start()
    try:
        found = examine(log, tmp_path / "copies")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(found, LogFile)
    assert (found.lines, found.damaged) == (3, [Damaged(2, 200 * MB, "x" * 1024, LONG)])
    assert found.read.read_bytes() == b"first\n\nlast\n"
    assert most < 16 * MB


@pytest.mark.spark
@pytest.mark.slow
def test_logs_of_another_program_are_rejected_rows(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of logs of other programs every line is a rejected row, one sentence says that, and the exit status is 1."""
    monkeypatch.setattr(pipeline_report, "stop_spark", lambda: None)
    (tmp_path / "logs").mkdir()
    web, system = '127.0.0.1 - - [10/Oct/2020:13:55:36 +0000] "GET / HTTP/1.1" 200 612', "Oct 10 13:55:36 host sshd[99]: closed"
    lines = [web, system]
    (tmp_path / "logs" / "access.log").write_text("\n".join(lines) + "\n")
    done = CliRunner().invoke(app, ["pipeline", "logs", str(tmp_path / "logs"), "--out", str(tmp_path / "out")])
    assert done.exit_code == 1 and isinstance(done.exception, SystemExit)
    assert "No line is a line of a Kafka broker's log: see the table rejected." in done.output
    assert sorted((row["n"], row["raw"]) for row in rows_of(tmp_path / "out", "rejected")) == [(1, lines[0]), (2, lines[1])]
