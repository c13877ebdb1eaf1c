"""Shows all runs whose journals are in a folder: as a picture, and as tables that Spark makes with one query.

A journal has no settings of brokers and no replaced rules. So `like` does not branch a kept run, but starts a new cluster with
the brokers, release and topics of the run. Example runs have a folder of their own: no later call counts them as the reader's.

Read next: `kcontrol/pipeline/spark_views.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kcontrol.core.errors import UserError
from kcontrol.core.model import TopicPartition
from kcontrol.install import run_cleanup
from kcontrol.journal.journal import Record
from kcontrol.lab.history import brokers, example_runs, partitions
from kcontrol.lab.history.entries import Entries, Row, entries_of
from kcontrol.lab.run import Run, open_journal
from kcontrol.lab.support import arguments
from kcontrol.lab.support.calls import Commands
from kcontrol.lab.support.missing_parts import MissingPart, part_or_substitute
from kcontrol.lab.support.output import Shown, say
from kcontrol.pipeline import door
from kcontrol.views import text
from kcontrol.views.run_lines import RunLine, RunLines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kcontrol.lab.lab import Lab

FEW, MOST_LINES = 12, 40


class Runs(Commands, owner="runs"):
    """The runs in a folder, the newest last; a notebook cell shows them as a picture with one time line per run.

    names               the names of the runs
    picture(highlight)  the picture, with frames around the lines of some runs
    open(name)          one run, read-only
    like(name)          a new cluster with the brokers, release and topics of a run
    spark()             a Spark session with the tables of all runs
    plan(query)         Spark's plan of a query, without ids and paths
    close()             stop Spark
    """

    def __init__(self, folder: str | Path | None, make: Callable[..., Lab]) -> None:
        self._make = make
        self._folder = run_cleanup.folder() if folder is None else arguments.path(folder, "runs")
        self._examples: Path | None = None
        self._lines: dict[tuple[Path, int], RunLine] = {}
        if folder is None and len(_files(self._folder)) < FEW:
            self._examples = example_runs.write(self._folder / example_runs.FOLDER)

    # ---------------------------------------------------------------- the files

    def _journals(self) -> list[door.JournalOfRun]:
        """Return the journals by name; kcontrol's examples come first if the default folder has fewer than twelve runs.

        Print a sentence for each unreadable file. Raises UserError if there is no journal.
        """
        found: list[door.JournalOfRun] = []
        for place in filter(None, (self._examples, self._folder)):
            if place == self._examples or self._examples is None or _files(place):
                journals, refused = door.journals_of(_files(place) or [place])  # not of folders below it
                found += journals
                for one in refused:
                    say(one.reason)
        if not found:
            raise UserError(f"The folder {self._folder} has no journal of a run: name another folder.")
        return found

    @property
    def names(self) -> list[str]:
        """The sorted names of the runs, after those of kcontrol's examples if the default folder has fewer than twelve runs."""
        return [journal.run for journal in self._journals()]

    def _named(self, name: object) -> door.JournalOfRun:
        journals = self._journals()
        if (found := next((journal for journal in journals if journal.run == name), None)) is None:
            listed = text.listed([repr(journal.run) for journal in journals[-9:]], 9)
            raise UserError(f"There is no run {arguments.shown(name)}; the newest of {len(journals)} runs are {listed}.")
        return found

    def open(self, name: str) -> Run:
        """Return a run, read-only. Raises UserError, which lists the newest runs, for an unknown name."""
        return open_journal(self._named(name).path)

    def like(self, name: str) -> Lab:
        """Return a new cluster with the brokers, release and topics of the kept run `name`, and all brokers started.

        The new run's journal is written to the folder of these kept runs. Raises UserError for an unknown name.
        """
        # A journal has no settings of brokers, no consumers and no replaced rules, so the new cluster has the release's
        # settings and rules, and no consumers.
        run = self.open(name)
        replicas: dict[TopicPartition, tuple[int, ...]] = {}
        for partition, ids in run.partitions().replicas.items():
            replicas[TopicPartition.parse(str(partition))] = tuple(map(int, ids))
        first = run.records[0].fields
        known = sorted({*first["brokers"], *(broker for brokers in replicas.values() for broker in brokers)})
        lab = self._make(brokers=known, release=first["release"], runs=self._folder)
        for topic in dict.fromkeys(partition.topic for partition in replicas):
            numbered = sorted((partition for partition in replicas if partition.topic == topic), key=lambda p: p.partition)
            lab.step(("create_topic", topic, tuple(replicas[partition] for partition in numbered))).run()
        return lab

    # ---------------------------------------------------------------- the picture

    def picture(self, highlight: str | Iterable[str] = ()) -> RunLines:
        """Return a picture with a timeline for each of the newest 40 runs, and a framed timeline for each name in `highlight`.

        Raises UserError, which lists the newest runs, for an unknown name.
        """
        framed = [self._named(name) for name in ([highlight] if isinstance(highlight, str) else highlight)]
        journals = self._journals()
        shown = [journal for journal in journals if journal in journals[-MOST_LINES:] or journal in framed]
        lines = [line for journal in shown if (line := self._line(journal)) is not None]
        number = len(journals)
        every = text.counted(number, "run")
        headline = every if len(shown) == number else f"{len(shown)} of {every}, the newest last"
        return RunLines(lines, headline, [_title(journal.run) for journal in framed])

    def _line(self, journal: door.JournalOfRun) -> RunLine | None:
        """Return the timeline of a run for the picture in which each run is a horizontal bar.

        If the run's journal is damaged, print a sentence and return None.
        """
        key = journal.path, journal.path.stat().st_size
        try:
            if key not in self._lines:
                self._lines[key] = run_line(open_journal(journal.path).records, _title(journal.run))
        except UserError as problem:
            say(str(problem))
            return None
        return self._lines[key]

    def __repr__(self) -> str:
        return repr(self.picture())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        try:
            return self.picture()._repr_mimebundle_(**kwargs)
        except UserError as problem:  # IPython would ask `__repr__` too, and show the error a second time
            return {"text/plain": str(problem)}

    # ---------------------------------------------------------------- Spark

    def spark(self, *, optional: bool = False, master: str = door.LOCAL) -> SparkSession | Any:
        """Return a Spark session with a view for each table of a whole run, such as `journal`, of all runs.

        optional  if Spark or Java is missing, whether to print a sentence and return a substitute
        master    the address of Spark, such as spark://HOST:PORT, whose workers read the files of the runs

        Raises UserError if Spark or Java is missing and `optional` is False.
        """
        journals = self._journals()
        spark = part_or_substitute(lambda: door.spark_session(master), optional=optional)
        if not isinstance(spark, MissingPart):
            door.spark_views.register_journals(spark, journals)
        return spark

    def plan(self, query: Any) -> Shown | MissingPart:
        """Return Spark's physical plan of `query`, a DataFrame: one operator per line, without ids and paths.

        If `query` is a MissingPart, the substitute for a missing Spark, return `query`. Raises UserError for any other value.
        """
        # An operator stands below the operator that reads its rows.
        return query if isinstance(query, MissingPart) else Shown(door.query_plan.operators(query))

    def close(self) -> None:
        """Stop Spark, which frees its memory; without Spark do nothing."""
        door.stop_spark()


def _files(folder: Path) -> list[Path]:
    return list(folder.glob(f"*{door.SUFFIX}"))


def _title(run: str) -> str:
    """The name "20240131-101500-simulated-2" gives "2024-01-31 10:15:00 (2)"; other names stay."""
    dated = door.DATED.match(run)
    if not dated:
        return run
    year, month, day, time = dated.groups()
    last = run[dated.end() :].rpartition("-")[2]
    return f"{year}-{month}-{day} {time[:2]}:{time[2:4]}:{time[4:]}{f' ({last})' if last.isdecimal() else ''}"


# ---------------------------------------------------------------- the line of one run in the picture


def run_line(records: Sequence[Record], name: str) -> RunLine:
    """Return the run `name` as a timeline: terms of controllers, kills of brokers, and times without a leader.

    A timeline is a horizontal bar. In a time without a leader at least one partition has no running leader.
    """
    run = entries_of(records)
    # Positions on the line are in ms of the run's clock; in a recording without times they count journal records.
    has_times = run.clock != "none"
    begin = records[0].at_ms if has_times else 1
    length = (records[-1].at_ms if has_times else len(records)) - begin

    def times(row: Row) -> tuple[int, int]:
        first, last = (row["begin_ms"], row["end_ms"]) if has_times else (row["n"], row["end_n"])
        return first - begin, length if last is None else last - begin

    terms = [(*times(row), row["broker"]) for row in brokers.tenures(run)]
    kills = [times(row)[1] for row in brokers.broker_lives(run) if row["ended_by"] == "killed"]
    return RunLine(name, length, has_times, terms, sorted(kills), list(_united(run, times)))


def _united(run: Entries, times: Any) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of each stretch of the run in which at least one partition has no running leader.

    `times` converts a row of the table `offline_windows` into (begin, end), in ms since the begin of the run.
    """
    # The numbers are ms, or positions of records in a recording without times.
    last: tuple[int, int] | None = None
    for begin, end in sorted(times(row) for row in partitions.offline_windows(run)):
        if last is not None and begin <= last[1]:
            last = last[0], max(last[1], end)
            continue
        if last is not None:
            yield last
        last = begin, end
    if last is not None:
        yield last
