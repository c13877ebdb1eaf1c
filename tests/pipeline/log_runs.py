"""Runs that are made from broker logs: from the log files of other runs, which Spark parses, and from single lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kcontrol import Lab
from kcontrol.journal import journal_file
from kcontrol.lab.run import Run
from kcontrol.pipeline.log_journal.log_line import Line
from kcontrol.pipeline.log_journal.to_journal import to_journal
from kcontrol.pipeline.logs import log_tables

Journals = dict[str, tuple[Lab, Run]]
"""By name, a run and the run that was made from its log files."""


def run_of_lines(lines: Iterable[Line], release: str, brokers: Iterable[int]) -> Run:
    """Return the run that these lines show, after the check that files of journals pass."""
    return Run(list(journal_file.check(to_journal(lines, release, brokers, zone="as written"))), "logs")


def journals_of(spark: Any, place: Path, labs: Mapping[str, Lab], releases: Mapping[str, str] | None = None) -> Journals:
    """Write the logs of `labs` below `place`, in the lab's release or that in `releases`; return each lab with their run."""
    from kcontrol.pipeline.log_journal.fact_lines import logs_of

    for name, lab in labs.items():
        lab.save_logs(place / "logs" / name)
    # Spark parses the files of all labs at once.
    log_tables.write_logs(spark, sorted((place / "logs").iterdir()), place / "out")
    table = spark.read.parquet(str(place / "out" / "records"))
    found = {}
    for name, lab in labs.items():
        logs = logs_of(table.where(table.file.contains(f"/{name}/")), (releases or {}).get(name))
        records = journal_file.check(to_journal(logs.lines(), logs.release, logs.brokers, zone=logs.zone))
        found[name] = lab, Run(list(records), name)
    return found
