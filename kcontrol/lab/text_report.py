"""Shows a run for the command line: as plain text, and as an HTML page."""

from pathlib import Path
from typing import Any

from kcontrol.lab.run import Run
from kcontrol.views import kafka_words, text

DONE = 2  # the importance of records of actions from outside


def report(run: Run) -> str:
    """Return a run as text: a line with its name and a summary, its actions from outside (such as a kill), its partitions."""
    done = text.lines(record for record in run.records if text.importance(record) >= DONE)
    return "\n".join([text.clean(repr(run)), *done, *(_partition(name, row) for name, row in run.partitions().iterrows())])


def _partition(name: Any, row: Any) -> str:
    state = row["state"] if isinstance(row["state"], str) else "no state in the controller's memory"
    where = f"leader {row['leader']}, ISR {row['isr']}, replicas {row['replicas']}, leader epoch {row['leader_epoch']}"
    return f"{text.clean(str(name), 60)}: {state}, {where}"


def in_kafkas_words(run: Run) -> str:
    """Return as one text the lines that brokers of the run's release would write to their log files in this run.

    A line with a value that the journal lacks, such as a duration, is left out.
    """
    return "\n".join(str(line) for lines in kafka_words.in_kafkas_words(run.records) for line in lines)


def page(run: Run, path: Path, other: Run | None = None) -> str:
    """Write an HTML page to `path`, with the run step by step, and `other` beside the run; return a sentence on how to open it.

    Raises UserError if the write fails.
    """
    from kcontrol.views.html_page import write_html

    write_html(run.records, path, title=run.name, beside=other and run._compared(other))
    return f"{path} shows the {'runs' if other else 'run'}: open it in a browser."
