"""Opens a folder of broker logs as a run that is only read."""

from pathlib import Path
from typing import Any

from kcontrol.core.errors import UserError
from kcontrol.lab.run import Run, open_journal
from kcontrol.lab.support import arguments
from kcontrol.lab.support.missing_parts import part_or_substitute
from kcontrol.lab.support.output import say
from kcontrol.pipeline.door import known_release, records_of_logs

NOTHING = "No line in {} says anything about a cluster: name a folder with state-change.log or controller.log of brokers."


def open_logs(path: str | Path, release: str | None = None, *, optional: bool = False) -> Run | Any:
    """Return the run that Kafka's log files show, read-only; Spark reads the files.

    path      a log file, or a folder with the logs of several brokers
    release   by default the release that the log lines show
    optional  whether to print a sentence and return a substitute if the logs cannot be read, such as without Java

    Raises UserError for a path without a log, for an unknown release, and if Spark or Java is missing.
    """
    place = arguments.path(path, "logs")
    chosen = None if release is None else known_release(release)
    # Journal records that no log line shows are inferred, and marked so in the viewer and in the tables of the whole run. A
    # sentence is printed for each file that is refused. An unknown release is an error in any case.
    return part_or_substitute(lambda: _run(place, chosen), optional=optional)


def open_run(path: Path) -> Run:
    """Return the run in a journal or a recording; if `path` is a folder, the run that its broker logs show.

    Raises UserError for any other file, for a folder without logs, and for a folder if Spark is missing.
    """
    try:
        is_folder = path.is_dir()
    except OSError:  # a name that is too long, which `open_journal` refuses
        is_folder = False
    return _run(path, None) if is_folder else open_journal(path)


def _run(place: Path, release: str | None) -> Run:
    records, release = records_of_logs(place, release, say)
    if len(records) == 1:
        raise UserError(NOTHING.format(place))
    return Run(records, f"{place.name}, Kafka {release}")
