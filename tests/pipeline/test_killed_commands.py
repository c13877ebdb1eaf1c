"""Commands that get SIGKILL at random moments: the next command makes the tables of a command that was not killed."""

from __future__ import annotations

import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kcontrol import Lab
from kcontrol.pipeline import pipeline
from kcontrol.pipeline.logs import log_tables
from tests.pipeline.few_tables import OF_LOGS, TABLES, few_tables
from tests.pipeline.kills import Arguments, drawn, killed_at, moments, run
from tests.pipeline.small_disk import SmallDisk
from tests.pipeline.table_files import files_in, files_of, is_whole, rows_of
from tests.pipeline.test_pipeline import days

__all__ = ["days"]  # the fixture

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SEED = 13
Tables = dict[str, list[str]]


def tables_in(out: Path, tables: Sequence[str]) -> Tables:
    return {name: rows_of(out / name) for name in tables if (out / name).exists()}


class Lane:
    """A folder of sources, a folder of tables, and a command that writes them and is killed at moments of a seed."""

    def __init__(self, folder: Path, kind: str, tables: Sequence[str], seed: int) -> None:
        self.sources, self.out, self.tables, self.seed = folder / "sources", folder / "out", tables, seed
        self.sources.mkdir(parents=True)
        self.arguments: Arguments = ["pipeline", kind, self.sources, "--out", self.out]
        self.choose = random.Random(seed)

    def play(self, sources: Sequence[Path], counts: tuple[int, int, int], check: Callable[[Path], None]) -> list[str]:
        """Kill as many commands as `moments` counts, then run one to its end; before each third kill a source more is there."""
        # After each kill all tables are whole, and before the publication they are the former ones. `check` is called too.
        left, killed = list(sources), list[str]()
        folders = [f"{pipeline.NEW}/{name}" for name in self.tables]
        for number, planned in enumerate(moments(self.choose, folders, *counts)):
            if number % 3 == 0 and left:
                shutil.copy(left.pop(0), self.sources)
            moment = drawn(planned, self.choose, self.out, self.tables)
            killed.append(f"seed {self.seed}: {moment}")
            before = files_of(self.out, self.tables) | files_of(self.out / pipeline.OLD, self.tables)
            assert killed_at(moment, self.arguments, self.out), killed
            unfinished = [name for name in self.tables if not is_whole(self.out / name)]
            assert not unfinished, killed
            # If the table that Java wrote is still unfinished, the command had put no table in place.
            if moment.place in folders and (self.out / moment.place).exists() and not (self.out / pipeline.OLD).exists():
                assert files_of(self.out, self.tables) <= before, killed
            check(self.out)
        for path in left:
            shutil.copy(path, self.sources)
        run(self.arguments)
        return killed


@pytest.fixture(scope="module")
def tables_of_runs(spark: Any, days: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tables of the runs in `days`, written by a command that was not killed."""
    out = tmp_path_factory.mktemp("tables of runs") / "out"
    with few_tables():
        pipeline.write_runs(spark, [days], out)
    return out


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the log files of a run of three brokers."""
    folder = tmp_path_factory.mktemp("logs")
    Lab(topics={"t": [[1, 2]]}, runs=None).kill(1).run().save_logs(folder / "brokers")
    for path in (folder / "brokers").rglob("*.log"):
        shutil.copy(path, folder / f"{path.parent.name}-{path.name}")
    shutil.rmtree(folder / "brokers")
    return folder


@pytest.fixture(scope="module")
def tables_of_logs(spark: Any, logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tables of `logs`, written by a command that was not killed."""
    out = tmp_path_factory.mktemp("tables of logs") / "out"
    with few_tables():
        log_tables.write_logs(spark, [logs], out, of_runs=True)
    return out


@pytest.fixture
def java_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for the temporary files of commands: those of a killed Java stay."""
    (tmp_path / "java").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "java"))


@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("java_files")
def test_commands_that_are_killed_give_the_tables_of_runs(days: Path, tables_of_runs: Path, tmp_path: Path) -> None:
    """After ten SIGKILLs at random moments the command makes the tables, and the files, of a command that was not killed."""
    # After each kill the tables have only rows of the complete tables. Runs arrive between the kills. The first folder is new.
    # The second has complete tables at first, and the file of its last run is gone, so a command that loses its rows cannot read
    # them again.
    expected = tables_in(tables_of_runs, TABLES)

    def check(out: Path) -> None:
        for name, rows in tables_in(out, TABLES).items():
            assert Counter(rows) <= Counter(expected[name]), name

    lanes = [Lane(tmp_path / f"lane {seed}", "runs", TABLES, seed) for seed in (SEED, SEED + 1)]
    shutil.copytree(tables_of_runs, lanes[1].out)
    files = sorted(days.iterdir())
    with ThreadPoolExecutor(len(lanes)) as pool:
        played = list(pool.map(lambda lane, sources: lane.play(sources, (2, 2, 1), check), lanes, (files, files[:-1])))
    assert sum(map(len, played)) == 10
    for lane, killed in zip(lanes, played, strict=True):
        assert files_in(lane.out, TABLES) == files_in(tables_of_runs, TABLES), killed


@pytest.mark.usefixtures("java_files")
def test_commands_that_are_killed_give_the_tables_of_logs(logs: Path, tables_of_logs: Path, tmp_path: Path) -> None:
    """After five SIGKILLs at random moments the command makes the tables, and the files, of a command that was not killed."""
    lane = Lane(tmp_path / "lane", "logs", OF_LOGS, SEED)
    killed = lane.play(sorted(logs.iterdir()), (1, 3, 1), lambda out: None)
    assert len(killed) == 5
    found = files_in(lane.out, OF_LOGS)
    named = {name: [row.replace(str(lane.sources), str(logs)) for row in rows] for name, rows in found.items()}
    assert named == files_in(tables_of_logs, OF_LOGS), killed


# ---------------------------------------------------------------- a full disk


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of each file in a folder, and in all folders in it, by its path in the folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.skipif(sys.platform != "linux", reason="a disk of a chosen size is made with tmpfs of Linux")
@pytest.mark.usefixtures("java_files")
@pytest.mark.parametrize(("kind", "room"), [("runs", 200_000), ("logs", 100_000)])
def test_a_disk_that_fills_up_is_one_sentence_and_keeps_the_former_tables(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, room: int
) -> None:
    """If the disk fills up while a table is written, the exit status is 1, and DIR has the bytes of the former tables only."""
    sources = request.getfixturevalue("days" if kind == "runs" else "logs")
    former = request.getfixturevalue(f"tables_of_{kind}")
    out, kept = tmp_path / "out", tmp_path / "kept"
    disk = SmallDisk(out, former, kept, room)
    done = disk.run(["pipeline", kind, sources, "--out", out])
    sentence = f"The tables cannot be written to {out}: No space left on device; make room, or name another folder."
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, f"kcontrol: {sentence}"), done.stdout
    assert contents(kept) == contents(former)
