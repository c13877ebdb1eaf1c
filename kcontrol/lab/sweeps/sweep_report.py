"""The command `kcontrol sweep`: plays a scenario many times with different settings, and prints the probabilities.

The command reports its progress. With --out it writes the printed table and the measures of each run as Parquet.
"""

import contextlib
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from kcontrol.core.errors import UserError
from kcontrol.lab.sweeps import sweep
from kcontrol.lab.sweeps.timed_run import Job
from kcontrol.pipeline.door import check_master, claimed, spark_session, stop_spark, write_frames
from kcontrol.views.text import counted

Say = Callable[[str], None]
FORMAT = "tables of a sweep"
REPORTS_EVERY_S = 5.0
SETTINGS: dict[str, Callable[[str], Any]] = {
    "replication": int,
    "unclean": {"true": True, "false": False}.__getitem__,
    "session": int,
}


class Asked(NamedTuple):
    """The arguments of the command `kcontrol sweep`.

    `replication`, `unclean` and `session` (timeouts in ms) are comma-separated values, such as "1,2,3".
    """

    scenario: str
    replication: str
    unclean: str
    session: str
    # The number of runs of each combination of `replication`, `unclean` and `session`.
    runs: int
    seed: int
    release: str
    assignor: str


def run(asked: Asked, out: Path | None, master: str | None, say: Say) -> bool:
    """Play the sweep `asked`, print its table by `say`, and return whether every run succeeded.

    `out` is a folder for the tables; `master` is Spark's address, None for child processes. Raises UserError for illegal
    arguments.
    """
    cells = sweep.cells(*(_values(name, getattr(asked, name)) for name in SETTINGS))
    job = Job(asked.scenario, asked.release, asked.seed, assignor=asked.assignor)
    sweep.check(job, cells, asked.runs, sweep.SECONDS)
    if master is not None:
        check_master(master, is_local_legal=True)
    # A folder that holds other files is an error.
    with _claimed(out) if out is not None else contextlib.nullcontext():
        begin_s = time.monotonic()
        spark = spark_session(master) if master is not None else None
        try:
            found = sweep.play(job, cells, asked.runs, sweep.SECONDS, spark, _progress(say, begin_s))
        finally:
            if spark is not None:
                stop_spark()
        say(found.cells.to_string(index=False, float_format="{:.4g}".format))
        for sentence in found.failures():
            say(sentence)
        if out is not None:
            write_frames(out, {name: getattr(found, name) for name in sweep.TABLES})
    return found.failed.empty


def _values(name: str, text: str) -> list[Any]:
    """[True, False] for "true,false". Raises UserError."""
    try:
        return [SETTINGS[name](word.strip()) for word in text.split(",")]
    except (ValueError, KeyError):
        example = {"replication": "1,2,3", "unclean": "true,false", "session": "6000,18000"}[name]
        raise UserError(f"--{name} cannot be {text!r:.80}: separate the values by commas, as in --{name} {example}.") from None


def _progress(say: Say, begin_s: float) -> sweep.Report:
    last_s = begin_s

    def report(done: int, number: int) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if now_s - last_s >= REPORTS_EVERY_S or done == number:
            last_s = now_s
            say(f"{now_s - begin_s:5.1f} s  {done:,} of {counted(number, 'run')} ({done / (now_s - begin_s):.1f} per second)")

    return report


def _claimed(out: Path) -> contextlib.AbstractContextManager[None]:
    """Raises UserError if `out` has other files, or if pyarrow is not installed."""
    # If the `with` block raises before `out` has a table, what was created is removed.
    if importlib.util.find_spec("pyarrow") is None:
        raise UserError("--out writes Parquet files with pyarrow, which is not installed: kcontrol doctor says how to get Spark.")
    return claimed(out, list(sweep.TABLES), FORMAT)
