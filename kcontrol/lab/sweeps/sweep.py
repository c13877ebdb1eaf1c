"""Sweeps: a scenario is played many times with each combination of settings, to estimate probabilities.

A cell is one combination of settings, such as replication factor 3 and a session timeout of 6,000 ms; the table of a sweep has a
row for each cell. Equal seeds give equal tables, in child processes and on Spark's executors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from kcontrol.core.errors import UserError
from kcontrol.lab.run import Run
from kcontrol.lab.support import arguments
from kcontrol.lab.support.late import pd
from kcontrol.lab.support.output import say
from kcontrol.lab.sweeps import processes, scenarios, timed_run
from kcontrol.lab.sweeps.intervals import Estimate, middle_value, proportion
from kcontrol.lab.sweeps.timed_run import Cell, Job, Outcome, Task
from kcontrol.lab.tables import journal_tables
from kcontrol.pipeline.door import shards
from kcontrol.views import text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST_SESSION_MS, MOST_SESSION_MS = 6_000, 30_000
"""group.min.session.timeout.ms, and replica.lag.time.max.ms of 2.8: no run of a sweep has a slow follower (`timed_run.py`)."""
SECONDS = 20.0
MOST_RUNS = 1_000_000
# The settings of a cell; `session` is in ms.
CELL = {"replication": "int64", "unclean": "bool", "session": "int64"}
# The number of all runs of a cell, and the number of its runs without measures.
COUNTS = {"runs": "int64", "failed": "int64"}
ESTIMATED = ("offline", "offline_ms", "lost", "rebalance_ms", "moved")
# Each value of a cell (a share of runs for `offline` and `lost`, else a median) with the ends of its 95 % interval.
ESTIMATES = {f"{name}{end}": "Float64" for name in ESTIMATED for end in ("", "_low", "_high")}
# The measures of one run: fields of `timed_run.Outcome`.
MEASURES = {"offline": "Int64", "offline_ms": "Int64", "lost": "Int64", "rebalance_ms": "Int64", "moved": "Int64"}
TABLES = {
    "cells": CELL | COUNTS | ESTIMATES,
    "runs": CELL | {"number": "int64"} | MEASURES,
    "failed": CELL | {"number": "int64", "reason": "string"},
}

Report = Callable[[int, int], None]
"""A function of the number of ended runs and the number of all runs."""


class Sweep:
    """The outcome of a sweep, shown as a table with one row per cell; a cell is a combination of the sweep's settings.

    cells   per cell: the number of runs, and five estimates; <name>_low and <name>_high are the ends of the 95 % interval
            offline       the share of runs in which a partition was offline
            offline_ms    the median of the lengths of each run's longest offline window
            lost          the share of runs that lost an acknowledged record
            rebalance_ms  the median of the lengths of each run's longest rebalance
            moved         the median of each run's number of moves of a partition to another consumer
    runs    one row per successful run, with these five measures of the run
    failed  the failed runs, each with the reason; failures() has them as sentences
    open(number, replication, unclean, session)  plays the run with this number in its cell again, and returns it
    """

    def __init__(self, job: Job, outcomes: Iterable[Outcome]) -> None:
        self._job = job
        self._outcomes = sorted(outcomes, key=lambda outcome: outcome.task)

    def __dir__(self) -> list[str]:
        return ["cells", "failed", "failures", "open", "runs"]

    @property
    def cells(self) -> pd.DataFrame:
        """One row per cell (a combination of the sweep's settings), with five estimates from the runs of the cell.

          offline, lost             shares of runs with an offline partition, and with a lost record
          offline_ms, rebalance_ms  medians of the lengths of each run's longest offline window and longest rebalance
          moved                     median of each run's number of moves of a partition to another consumer

        The columns with `_low` and `_high` after such a name are the ends of its 95 % interval.
        """
        # `runs` counts all runs of the cell, `failed` the runs without measures; the shares and the medians are those of the
        # other runs.
        by_cell: dict[Cell, list[Outcome]] = {}
        for outcome in self._outcomes:
            by_cell.setdefault(outcome.task.cell, []).append(outcome)
        return journal_tables.table((_cell_row(cell, found) for cell, found in by_cell.items()), TABLES["cells"])

    @property
    def runs(self) -> pd.DataFrame:
        """One row per successful run: its settings, its number with these settings, its measures.

        `offline` counts offline windows, `lost` lost records, `moved` moves of a partition to another consumer; `offline_ms` is
        the longest window, `rebalance_ms` the longest rebalance.
        """
        # The offline windows are the rows of the run's table `offline_windows`; `lost` counts acknowledged records.
        kept = (outcome for outcome in self._outcomes if outcome.failed is None)
        rows = (_task_row(o.task) | {name: getattr(o, name) for name in MEASURES} for o in kept)
        return journal_tables.table(rows, TABLES["runs"])

    @property
    def failed(self) -> pd.DataFrame:
        """One row per failed run of the sweep: its settings, its number among runs with these settings, the reason."""
        rows = (_task_row(o.task) | {"reason": o.failed} for o in self._outcomes if o.failed is not None)
        return journal_tables.table(rows, TABLES["failed"])

    def failures(self) -> list[str]:
        """Return one sentence for each failed run, with its settings (its cell), its number in the cell and the reason."""
        return [f"Run {o.task.number} of {o.task.cell} failed: {o.failed}." for o in self._outcomes if o.failed is not None]

    def open(self, number: int, replication: int, unclean: bool, session: int) -> Run:
        """Play run `number` of one combination of settings again and return it, read-only; the numbers are in `runs`.

        The other arguments are the settings; `session` is in ms. Raises UserError for a run that failed or is unknown.
        """
        task = Task(Cell(replication, unclean, session), number)
        found = next((outcome for outcome in self._outcomes if outcome.task == task), None)
        if found is None:
            raise UserError(f"The sweep has no run {arguments.shown(number)} of {task.cell}: its rows are in `runs`.")
        if found.failed is not None:
            raise UserError(f"Run {number} of {task.cell} has failed: {found.failed}.")
        return Run(timed_run.play(self._job, task)[0].journal, f"run {number} of {task.cell}")

    def __repr__(self) -> str:
        return repr(self.cells)

    def _repr_html_(self) -> str:
        return str(self.cells._repr_html_())  # type: ignore[operator]


def sweep(
    scenario: str,
    replication: int | Sequence[int] = 3,
    unclean: bool | Sequence[bool] = False,
    session: int | Sequence[int] = 18_000,
    runs: int = 100,
    seed: int = 1,
    *,
    release: str = "2.8",
    assignor: str = "range",
    rows: Mapping[Any, Callable[..., Any]] | None = None,
    strategies: Mapping[str, Callable[..., Any]] | None = None,
    rules: Mapping[str, Any] | None = None,
    seconds: float = SECONDS,
    spark: SparkSession | None = None,
) -> Sweep:
    """Return the outcome of `runs` random runs of a scenario for each combination of three settings.

    scenario     "rolling restart", "random deaths" or "consumers come and go"
    replication  the replication factor
    unclean      unclean.leader.election.enable
    session      the session timeout of brokers and consumers in ms
    assignor     partition.assignment.strategy: "range", "roundrobin", "sticky" or "cooperative-sticky"
    seconds      the time limit of a run; a run that takes longer fails
    spark        such as lab.spark(): its executors play the runs, in place of processes of this machine
    release, rows, strategies, rules  those of Lab(...)

    Replication, unclean and session are one value or a list. Raises UserError for an illegal argument.
    """
    # A run also fails if a function of the learner raises an error; the other runs go on. strategies={"assignor": mine}
    # replaces the assignor; a member's subscription has the partitions that it owns (`owned`) under "sticky" and
    # "cooperative-sticky" only.
    chosen = cells(replication, unclean, session)
    job = Job(scenario, release, seed, rows, strategies, rules, assignor)
    found = play(job, chosen, runs, seconds, arguments.spark_session(spark))
    if failures := found.failures():
        say(f"{len(failures)} of {text.counted(len(found._outcomes), 'run')} failed; `failures()` has the reasons. {failures[0]}")
    return found


def play(
    job: Job, cells: Sequence[Cell], runs: int, seconds: float, spark: SparkSession | None, report: Report = lambda *_: None
) -> Sweep:
    """Play `runs` runs of `job` per cell (combination of settings) in child processes, or on the executors of `spark`.

    Return a Sweep with the outcomes. A run that exceeds `seconds` fails. `report` is called with (number of ended runs, number
    of all runs).
    """
    check(job, cells, runs, seconds)
    tasks = [Task(cell, number) for cell in cells for number in range(1, runs + 1)]
    if spark is not None:
        parts = processes.shards(tasks, shards.parallelism(spark))
        found = shards.flat_mapped(spark, partial(_attempted, job, seconds), parts)
        if refused := [reason for reason in found if isinstance(reason, str)]:
            raise UserError(refused[0])
        # With Spark the report comes only after the last run.
        report(len(tasks), len(tasks))
        return Sweep(job, found)
    outcomes = []
    for outcome in processes.outcomes(job, processes.shards(tasks, cores()), seconds):
        outcomes.append(outcome)
        report(len(outcomes), len(tasks))
    return Sweep(job, outcomes)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _attempted(job: Job, seconds: float, tasks: Sequence[Task]) -> list[Outcome | str]:
    """On a Spark executor. A run fails after `seconds`; after a UserError the list has only its text."""
    try:
        return list(processes.outcomes(job, [tasks], seconds))
    except UserError as problem:
        return [str(problem)]


def cells(replication: object, unclean: object, session: object) -> list[Cell]:
    """Return a Cell for each combination of replication factor, unclean election and session timeout (`session`, ms).

    Each of the three is a value or a list of values. Raises UserError for an illegal value.
    """
    factors, times = range(1, len(scenarios.BROKERS) + 1), range(LEAST_SESSION_MS, MOST_SESSION_MS + 1)
    return [
        Cell(*values)
        for values in product(
            _values(replication, "replication", lambda v: _is_whole(v) and v in factors, f"numbers from 1 to {factors[-1]}"),
            _values(unclean, "unclean", lambda v: isinstance(v, bool), "True or False"),
            _values(session, "session", lambda v: _is_whole(v) and v in times, f"ms from {times[0]} to {times[-1]}"),
        )
    ]


def _values(given: Any, name: str, is_legal: Callable[[Any], bool], legal: str) -> list[Any]:
    """Each value once. Raises UserError, with `legal`, for an empty list or an illegal value."""
    values = list(given) if isinstance(given, list | tuple | set | range) else [given]
    wrong = next((value for value in values if not is_legal(value)), None) if values else given
    if wrong is not None or not values or None in values:
        raise UserError(f"{name} cannot be {arguments.shown(wrong)}: give one or more of {legal}.")
    return list(dict.fromkeys(values))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def check(job: Job, cells: Sequence[Cell], runs: Any, seconds: Any) -> None:
    """Raise UserError, with the legal values, for illegal arguments of a sweep: runs, seconds, seed or settings.

    A cell is one combination of settings.
    """
    if arguments.whole(runs, "The number of runs") < 1:
        raise UserError(f"The number of runs must be 1 or more, not {runs}.")
    if runs * len(cells) > MOST_RUNS:
        raise UserError(f"A sweep has at most {MOST_RUNS:,} runs, not {runs * len(cells):,}: choose fewer runs or settings.")
    arguments.whole(job.seed, "The seed")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds > 0:
        raise UserError(f"The seconds of a run must be a number above 0, such as {SECONDS:g}, not {arguments.shown(seconds)}.")
    consumers = scenarios.named(job.scenario).consumers
    for cell in cells:
        timed_run.settings_of(job, cell, 0, consumers)


def _task_row(task: Task) -> dict[str, Any]:
    return {**task.cell._asdict(), "number": task.number}


def _cell_row(cell: Cell, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    kept = [outcome for outcome in outcomes if outcome.failed is None]
    estimates = {
        "offline": proportion(sum(outcome.offline > 0 for outcome in kept), len(kept)),
        "offline_ms": middle_value([outcome.offline_ms for outcome in kept if outcome.offline_ms is not None]),
        "lost": proportion(sum(outcome.lost > 0 for outcome in kept), len(kept)),
        "rebalance_ms": middle_value([outcome.rebalance_ms for outcome in kept if outcome.rebalance_ms is not None]),
        "moved": middle_value([outcome.moved for outcome in kept]),
    }
    counts = {"runs": len(outcomes), "failed": len(outcomes) - len(kept)}
    ends = {key: value for name, found in estimates.items() for key, value in _ends(name, found).items()}
    return cell._asdict() | counts | ends


def _ends(name: str, found: Estimate) -> dict[str, float | None]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
