"""Commands that get SIGKILL at chosen moments: before one of their own changes of a folder, or while Java writes a table.

A moment is an event, not a time. The command stops itself (SIGSTOP) before the chosen change, or a new name appears in the folder
of a table; then the test kills the command, which makes few tables, and all processes that it has started, or the command alone.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from kcontrol.pipeline.pipeline import NEW, OLD
from tests.pipeline.few_tables import CODE
from tests.pipeline.few_tables import COMMAND as WITH_FEW

SHARE_ALONE = 1 / 4
POLL_S, GONE_WITHIN_S = 0.01, 60.0
MOST_NAMES = 7
"""The smallest number of names that Spark makes in the folder of a table, with the names that Spark changes or deletes later."""

# Starts the command; before the change with the number `left` in the folder `out` the process stops itself. Changes by Python are
# counted; if `late` is 1, only those after the start of Spark, which follows the repair of what a killed command has left.
STOPPING = f"""{CODE}
import os, signal, sys
left, late, out = int(sys.argv.pop(1)), sys.argv.pop(1) == "1", sys.argv.pop(1)
def stop(event, arguments):
    global left
    if event == "open":
        changes = str(arguments[0]).startswith(out) and arguments[1] not in (None, "r", "rb")
    elif event in ("os.mkdir", "os.rename"):
        changes = str(arguments[0]).startswith(out)
    else:  # shutil.rmtree deletes names relative to an open folder
        changes = event in ("os.remove", "os.rmdir") and (arguments[1] != -1 or str(arguments[0]).startswith(out))
    if changes and (not late or getattr(sys.modules.get("kcontrol.pipeline.gateway"), "_gateway", None)):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
sys.addaudithook(stop)
from kcontrol.cli import main
sys.exit(main())
"""
COMMAND = [sys.executable, "-m", "kcontrol"]
Arguments = Sequence[str | Path]


class Moment(NamedTuple):
    """A moment in a command's life.

    `place` is "repair" (before Spark starts), "publish" (after Spark has started), or a folder in the folder of the tables.
    `nth` is the number of the command's own change from 1, or of the name in the folder from 1. With `alone` only the process of
    the command gets SIGKILL, and its Java has to end by itself; otherwise all processes get SIGKILL.
    """

    place: str
    nth: int
    alone: bool


def run(arguments: Arguments) -> str:
    done = subprocess.run([*WITH_FEW, *arguments], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


def killed_at(moment: Moment, arguments: Arguments, out: Path) -> bool:
    """Kill the command, and all its processes, at the moment; return False if the command ended before."""
    stops = moment.place in ("repair", "publish")
    late = "1" if moment.place == "publish" else "0"
    command = [sys.executable, "-c", STOPPING, str(moment.nth), late, str(out), *arguments] if stops else [*WITH_FEW, *arguments]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            happened = _is_stopped(process) if stops else _is_written(process, out / moment.place, moment.nth)
            while process.poll() is None:
                if next(happened):
                    _kill(process, alone=moment.alone)
                    return True
                time.sleep(POLL_S)  # neither a stop by SIGSTOP nor a file that Java writes calls this process
        finally:
            process.kill()
        return False


def _is_stopped(process: subprocess.Popen[bytes]) -> Iterator[bool]:
    parent = psutil.Process(process.pid)
    while True:
        yield parent.status() == psutil.STATUS_STOPPED


def _is_written(process: subprocess.Popen[bytes], folder: Path, nth: int) -> Iterator[bool]:
    """Yield whether since the command's first line `nth` names have appeared in the folder, or the folder is in its place."""
    assert process.stdout is not None
    process.stdout.readline()  # what an earlier command has left is deleted before this line
    before, names = _names(folder), set[Path]()
    while True:
        found = _names(folder) - before
        names |= found
        yield len(names) >= nth or bool(names and not found)


def _names(folder: Path) -> set[Path]:
    return {Path(place) / name for place, folders, files in os.walk(folder) for name in (*folders, *files)}


def _kill(process: subprocess.Popen[bytes], *, alone: bool) -> None:
    """Send SIGKILL to the process, and to its children unless `alone`; wait until all of them have ended."""
    children = psutil.Process(process.pid).children(recursive=True)
    if not alone:
        _each(children, psutil.Process.suspend)  # so that no process of the command sees the end of another
    process.kill()
    if not alone:
        _each(children, psutil.Process.kill)
    process.wait()
    _, left = psutil.wait_procs(children, GONE_WITHIN_S)
    assert not left, f"still running: {left}"


def _each(processes: Sequence[psutil.Process], act: Callable[[psutil.Process], None]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):  # a worker of Spark may have ended
            act(process)


def moments(choose: random.Random, folders: Sequence[str], repairs: int, writes: int, publications: int) -> Iterator[Moment]:
    """Yield in random order: `repairs`, moments at which Java writes into one of the folders (`writes`), `publications`."""
    places = ["repair"] * repairs + [choose.choice(folders) for _ in range(writes)] + ["publish"] * publications
    choose.shuffle(places)
    for place in places:
        yield Moment(place, choose.randint(1, MOST_NAMES), choose.random() < SHARE_ALONE)


def drawn(moment: Moment, choose: random.Random, out: Path, tables: Sequence[str]) -> Moment:
    """The moment; `repair` and `publish` get the number of one of the changes which the command makes of `out` as it is."""
    if moment.place == "repair":
        return moment._replace(nth=choose.randint(1, 1 + len(_names(out / NEW) | _names(out / OLD))))
    if moment.place == "publish":
        former = [out / name for name in tables if (out / name).exists()]
        removed = sum(len(_names(table)) for table in former)
        return moment._replace(nth=choose.randint(1, 6 + len(tables) + len(former) + removed))
    return moment
