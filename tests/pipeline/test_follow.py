"""Tables of growing logs: after appends, rotations and killed processes they have the rows of one batch over the final files."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from typer.testing import CliRunner

from kcontrol import Lab
from kcontrol.cli import app
from kcontrol.core.errors import UserError
from kcontrol.pipeline import pipeline, pipeline_report
from kcontrol.pipeline.follow import checkpoint, follow
from kcontrol.pipeline.follow.follow import Following
from kcontrol.pipeline.logs import log_tables
from tests.pipeline import kills
from tests.pipeline.few_tables import OF_LOGS, few_tables
from tests.pipeline.growing_logs import Growing

SEED = 13
TRACE = b"java.io.IOException: Connection to 2 was disconnected\n\tat kafka.Some.thing(Some.scala:7)\n\t... 3 more\n"


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The logs of three brokers of a run with a failover, by file; some records have stack traces, one file ends in a line."""
    folder = tmp_path_factory.mktemp("run") / "logs"
    Lab(topics={"t": [[2, 3], [1, 2, 3]]}, runs=None).kill(1).run().start(1).run().kill(2).run().save_logs(folder)
    texts = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        lines = path.read_bytes().splitlines(keepends=True)
        pieces = [line + TRACE if place % 7 == 3 else line for place, line in enumerate(lines)]
        texts["-".join(path.relative_to(folder).parts)] = b"no record\n" + b"".join(pieces)
    last = max(texts)
    texts[last] = texts[last].rstrip(b"\n")
    return texts


def tables_in(out: Path) -> dict[str, list[str]]:
    names = [name for name in log_tables.ALL_TABLES if (out / name).exists()]
    return {name: sorted(map(repr, parquet.read_table(out / name).to_pylist())) for name in names}


def followed(asked: Following, *, rounds: int | None = None) -> list[log_tables.Written]:
    """Follow the logs as the command does, until they are read, or for a number of publications."""
    with checkpoint.opened(asked.out, asked.paths) as state:
        found = follow.follow(asked, state, once=rounds is None, wait=lambda: None)
        return list(found) if rounds is None else [next(found) for _ in range(rounds)]


def asked(spark: Any, logs: Path, out: Path, report: Callable[[str], None] = lambda _: None) -> Following:
    return Following(spark, [logs], out, pipeline.ALL, report, of_runs=False)


def batch(spark: Any, logs: Path, out: Path, *, of_runs: bool = False) -> dict[str, list[str]]:
    with few_tables():
        log_tables.write_logs(spark, [logs], out, of_runs=of_runs)
    return tables_in(out)


@pytest.mark.spark
@pytest.mark.slow
def test_growing_logs_give_the_tables_of_a_batch(
    spark: Any, texts: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After rounds between which logs begin, grow and are rotated, all tables have the rows of a batch over the final files."""
    # A round reads at most a third of the bytes, and the parts of three rounds are merged.
    monkeypatch.setattr(follow, "MOST_PARTS", 2)
    monkeypatch.setattr(follow, "ROUND_BYTES", sum(map(len, texts.values())) // 3)
    logs = Growing(tmp_path / "logs", texts, random.Random(SEED))
    logs.append(2_000)
    for _ in range(2):
        for _ in range(20):
            logs.append(1_500)
        followed(asked(spark, logs.folder, tmp_path / "out"))
        for _ in range(3):
            logs.rotate()
    logs.finish()
    (written,) = followed(asked(spark, logs.folder, tmp_path / "out"))
    assert written == log_tables.write_logs(spark, [logs.folder], tmp_path / "batch")
    assert tables_in(tmp_path / "out") == tables_in(tmp_path / "batch"), f"seed {SEED}"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {pipeline.MARK, log_tables.FOLLOW, *log_tables.TABLES}
    assert followed(asked(spark, logs.folder, tmp_path / "out")) == [written]


@pytest.mark.spark
@pytest.mark.slow
def test_a_record_that_may_go_on_is_held_back(spark: Any, tmp_path: Path) -> None:
    """If a file has grown since it was read, the tables do not have its last record, until a look finds no further byte."""
    log = tmp_path / "logs" / "server.log"
    log.parent.mkdir()
    line = "[2020-01-01 00:00:00,00%d] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"
    log.write_text(line % 1 + line % 2)

    def report(step: str) -> None:
        if step.startswith("reading 1"):
            with log.open("a") as file:
                file.write("\tgoes on\n" if log.read_text().count("goes on") < 1 else "")

    records = [
        written.facts + written.other for written in followed(asked(spark, log.parent, tmp_path / "out", report), rounds=2)
    ]
    assert records == [1, 2]
    rows = parquet.read_table(tmp_path / "out" / "records").to_pylist()
    assert sorted((row["n"], row["lines"]) for row in rows) == [(1, 1), (2, 2)]


class Killed(BaseException):
    """The end of the process."""


@pytest.mark.spark
@pytest.mark.slow
def test_a_process_that_ends_between_any_two_steps_changes_no_table(
    spark: Any, texts: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended before the state is replaced, between two tables, after the last one, or while a table is missing: no row is lost."""
    choose = random.Random(SEED)
    logs, out = Growing(tmp_path / "logs", texts, choose), tmp_path / "out"
    logs.append(2_000)
    for limit in (1, 2, 4, 2):
        for _ in range(5):
            logs.append(1_500)
        with monkeypatch.context() as patched:
            ends_before(patched, limit)
            with pytest.raises(Killed):
                followed(asked(spark, logs.folder, out))
        logs.rotate()
    logs.finish()
    followed(asked(spark, logs.folder, out))
    assert tables_in(out) == batch(spark, logs.folder, tmp_path / "batch"), f"seed {SEED}"
    assert {path.name for path in out.iterdir()} == {pipeline.MARK, log_tables.FOLLOW, *log_tables.TABLES}


def ends_before(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """Let the process end before the change of a file's name with this number, counted from 0 in the folder of the tables."""
    seen = iter(range(limit + 1))

    def counted(change: Callable[[Path, Path], Path]) -> Callable[[Path, Path], Path]:
        def changed(path: Path, to: Path) -> Path:
            if next(seen) == limit:
                raise Killed
            return change(path, to)

        return changed

    monkeypatch.setattr(Path, "rename", counted(Path.rename))
    monkeypatch.setattr(Path, "replace", counted(Path.replace))


@pytest.mark.spark
@pytest.mark.slow
def test_a_command_that_was_killed_gives_the_tables_of_a_batch_when_it_runs_again(
    spark: Any, texts: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands that get SIGKILL while the logs grow, then one to the end: the tables of a batch over the final files."""
    # The first is killed with its Java while it writes a part of the checkpoint, the second alone before a change of its own.
    (tmp_path / "java").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "java"))  # a killed Java leaves its temporary files
    choose = random.Random(SEED)
    logs, out = Growing(tmp_path / "logs", texts, choose), tmp_path / "out"
    command: kills.Arguments = ["pipeline", "logs", logs.folder, "--out", out, "--follow", "--available-now"]
    moments = (
        kills.Moment(log_tables.FOLLOW, choose.randint(1, kills.MOST_NAMES), alone=False),
        kills.Moment("publish", choose.randint(1, 2 * len(OF_LOGS)), alone=True),
    )
    for moment in moments:
        for _ in range(5):
            logs.append(1_500)
        assert kills.killed_at(moment, command, out), moment
        logs.rotate()
    logs.finish()
    kills.run(command)
    assert tables_in(out) == batch(spark, logs.folder, tmp_path / "batch", of_runs=True), f"seed {SEED}: {moments}"
    assert {path.name for path in out.iterdir()} == {pipeline.MARK, log_tables.FOLLOW, *OF_LOGS}
    parts = json.loads((out / log_tables.FOLLOW / checkpoint.STATE).read_text())["parts"]
    assert {path.name for path in (out / log_tables.FOLLOW).iterdir()} == {checkpoint.STATE, *parts}


@pytest.mark.spark
@pytest.mark.slow
def test_ctrl_c_ends_the_command(tmp_path: Path) -> None:
    """After SIGINT the exit status is 0, the last sentence has the numbers of the tables, and the tables are complete."""
    log = tmp_path / "logs" / "server.log"
    log.parent.mkdir()
    log.write_text("[2020-01-01 00:00:00,001] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n")
    command = [*kills.COMMAND, "pipeline", "logs", str(log.parent), "--out", str(tmp_path / "out"), "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        numbers = "1 file was read: 1 line = 1 with facts + 0 other records + 0 continuations + 0 rejected."
        while (line := process.stdout.readline().rstrip("\n")) and line != numbers:
            pass
        assert line == numbers
        os.kill(process.pid, signal.SIGINT)
        assert process.stdout.read() == f"Ctrl-C ended the command. {numbers}\n"
    assert process.returncode == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {pipeline.MARK, log_tables.FOLLOW, *log_tables.ALL_TABLES}


# ---------------------------------------------------------------- without Spark


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "logs" / "server.log"
    path.parent.mkdir()
    path.write_text("[2020-01-01 00:00:00,001] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n")
    return path


def refused(*arguments: str | Path) -> str:
    """Return the sentence with which the command refuses its arguments; fail if the command starts Spark."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pipeline_report, "spark_session", lambda master: pytest.fail("Spark starts"))  # or it follows without end
        done = CliRunner().invoke(app, ["pipeline", "logs", *map(str, arguments)])
    assert done.exit_code == 1 and isinstance(done.exception, UserError)
    return str(done.exception)


@pytest.fixture
def out(tmp_path: Path, log: Path) -> Iterator[Path]:
    """A folder into which the log is followed."""
    with checkpoint.opened(tmp_path / "out", [log.parent]) as state:
        checkpoint.save(tmp_path / "out", state)
    return tmp_path / "out"


def test_a_folder_that_follows_is_not_replaced_by_a_batch(log: Path, out: Path) -> None:
    """A call without --follow into a folder with a checkpoint is refused."""
    assert refused(log, "--out", out) == f"{out} has tables of --follow: add --follow, or name another folder."


def test_other_paths_are_refused(log: Path, out: Path) -> None:
    """A folder follows the paths of its first call."""
    sentence = f"{out} follows {log.parent}: name these, or another folder for the tables."
    assert refused(log, "--out", out, "--follow") == sentence


def test_a_damaged_checkpoint_is_refused(log: Path, out: Path) -> None:
    """A checkpoint that is no JSON, or of another version, is one sentence with its path."""
    state = out / log_tables.FOLLOW / checkpoint.STATE
    for text, words in (
        (b"{", "is damaged: name another folder"),
        (state.read_bytes().replace(b":1,", b":2,", 1), "was written by a later kcontrol"),
    ):
        state.write_bytes(text)
        assert f"The checkpoint {state} {words}" in refused(log.parent, "--out", out, "--follow")


def test_two_commands_do_not_follow_into_one_folder(log: Path, out: Path) -> None:
    """As long as a process follows into a folder, a second command is refused, and the first one's files stay."""
    (out / pipeline.NEW).mkdir()
    with checkpoint.opened(out, [log.parent]):
        (out / pipeline.NEW).mkdir()
        assert "Another process follows logs into" in refused(log.parent, "--out", out, "--follow")
        assert (out / pipeline.NEW).is_dir()


def test_available_now_needs_follow(log: Path, tmp_path: Path) -> None:
    """--available-now alone is one sentence, and no folder is made."""
    sentence = refused(log, "--out", tmp_path / "out", "--available-now")
    assert sentence == "--available-now belongs to --follow: write both." and not (tmp_path / "out").exists()


def test_a_folder_of_other_files_is_not_followed_into(log: Path) -> None:
    """A folder with other files is refused and kept."""
    assert "holds other files, such as server.log" in refused(log, "--out", log.parent, "--follow")
    assert [path.name for path in log.parent.iterdir()] == [log.name]


def test_a_refused_call_stops_no_session(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is refused before it uses Spark does not stop a session of this process."""
    stops = list[str]()
    monkeypatch.setattr(pipeline_report, "stop_spark", lambda: stops.append("stopped"))
    assert "holds other files" in refused(log, "--out", log.parent, "--follow")
    assert stops == []


def test_a_path_without_a_log_leaves_no_folder(tmp_path: Path) -> None:
    """A path that does not exist is one sentence, before a folder is made."""
    assert "There is no file or folder" in refused(tmp_path / "no", "--out", tmp_path / "out", "--follow")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("topic", ["", "..", "no such topic!", "t" * 256])
def test_a_name_that_no_topic_can_have_is_refused(log: Path, tmp_path: Path, topic: str) -> None:
    """--follow refuses a topic that Kafka does not permit, and creates no folder."""
    found = refused(log, "--out", tmp_path / "deep" / "out", "--follow", "--topic", topic)
    assert found.startswith(f"--topic {topic!r} is no topic: a topic") and found.count("\n") == 0
    assert not (tmp_path / "deep").exists()


def end_with_an_error(out: Path, log: Path, *, published: str) -> None:
    """Open the checkpoint of a folder, save it with these published tables, and raise an error."""
    with checkpoint.opened(out, [log.parent]) as state:
        state.published = published
        checkpoint.save(out, state)
        raise UserError("There is no room.")


@pytest.mark.parametrize("kept", [(), (pipeline.MARK,)])
def test_a_refused_call_leaves_no_folder(log: Path, tmp_path: Path, kept: tuple[str, ...]) -> None:
    """After a refusal before the first tables the folders are as before the call, without `_follow`."""
    out = tmp_path / "deep" / "out"
    if kept:
        pipeline.claim(out, log_tables.ALL_TABLES, log_tables.FORMAT)
    with pytest.raises(UserError, match="no room"):
        end_with_an_error(out, log, published="")
    assert [path.name for path in out.iterdir()] == list(kept) if kept else not (tmp_path / "deep").exists()


def test_an_error_after_the_first_tables_leaves_the_checkpoint(log: Path, tmp_path: Path) -> None:
    """A call that has published tables keeps its checkpoint, even if it ends with an error."""
    out = tmp_path / "out"
    with pytest.raises(UserError, match="no room"):
        end_with_an_error(out, log, published="tables")
    assert (out / log_tables.FOLLOW / checkpoint.STATE).exists()


@pytest.mark.spark
@pytest.mark.slow
def test_a_topic_that_no_line_names_yet_is_followed(spark: Any, tmp_path: Path) -> None:
    """Until a line names the topic, a step says so, with the topics found; then the table has the record of the topic."""
    log = tmp_path / "logs" / "state-change.log"
    log.parent.mkdir()
    line = (
        "[2020-01-01 00:00:00,00%d] TRACE [Controller id=1 epoch=1] Changed partition %s-0 from OfflinePartition to "
        "OnlinePartition with state LeaderAndIsr(leader=1, leaderEpoch=1, isr=List(1), zkVersion=2) (state.change.logger)\n"
    )
    log.write_text(line % (1, "orders"))
    steps = list[str]()
    given = asked(spark, log.parent, tmp_path / "out", steps.append)._replace(chosen=pipeline.Chosen(topic="payments"))
    first = followed(given)
    with log.open("a") as file:
        file.write(line % (2, "payments"))
    second = followed(given)
    assert [step for step in steps if "topic" in step] == ["no line names the topic payments yet; the topics found are orders"]
    assert [(written.facts, written.left_out) for written in first + second] == [(0, 1), (1, 1)]
