"""Prints the summary of a report in the terminal: a table of the runs, and a line for each section."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from kcontrol.pipeline.report.sections import Section
from kcontrol.pipeline.report.tables import RunTimes
from kcontrol.views import clock, text

MOST_RUNS = 40


def print_summary(console: Console, runs: Sequence[RunTimes], found: Sequence[Section]) -> None:
    """A line for each of the first 40 runs, one for all, and a sentence per section."""
    table = Table(Column("run", overflow="fold"), *(Column(section.id, justify="right") for section in found))
    counts = [section.by_run() for section in found]
    for run in runs[:MOST_RUNS]:
        table.add_row(Text(text.clean(run.name)), *(f"{count[run.name]:,}" for count in counts))
    table.add_row(Text(text.counted(len(runs), "run", "runs in all")), *(f"{len(section.rows):,}" for section in found))
    console.print(table)
    for section in found:
        console.print(Text(sentence(section)), soft_wrap=True)


def sentence(section: Section) -> str:
    """Return a section in one sentence, such as "Rebalances: 3 (reason join: 3); the longest took 5 s in run-1"."""
    if not section.rows:
        return f"{section.title}: none"
    counts = ", ".join(f"{section.key} {text.clean(key)}: {count:,}" for key, count in section.by_key().items())
    if section.inferred:
        counts += f"; {section.inferred:,} with inferred values"
    durations = section.durations()
    if not durations:
        return f"{section.title}: {len(section.rows):,} ({counts})"
    row = max((one.longest for one in durations), key=lambda row: int(row["duration_ms"]))
    longest = f"the longest took {clock.duration(row['duration_ms'])} in {text.clean(row['run'])}"
    return f"{section.title}: {len(section.rows):,} ({counts}); {longest}"
