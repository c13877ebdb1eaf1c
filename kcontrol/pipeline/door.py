"""What the lab uses of the operator's pipeline: sessions and jobs of Spark, the SQL tables of runs, kept runs, broker logs.

Nothing else of this folder is imported by the reader's house (`lint-imports`). The door itself needs no PySpark.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from kcontrol.journal import journal_file
from kcontrol.journal.journal import Record
from kcontrol.pipeline import query_plan, shards, spark_views
from kcontrol.pipeline.cluster import check_master
from kcontrol.pipeline.gateway import LOCAL, open_session, spark_session, stop_spark
from kcontrol.pipeline.log_journal.releases import checked as known_release
from kcontrol.pipeline.log_journal.to_journal import WORLD, to_journal
from kcontrol.pipeline.logs.files import log_files
from kcontrol.pipeline.run_files import DATED, SUFFIX, JournalOfRun, journals_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = (
    "DATED", "LOCAL", "SUFFIX", "WORLD", "JournalOfRun", "check_master", "claimed", "journals_of", "known_release", "query_plan",
    "records_of_logs", "shards", "spark_session", "spark_views", "stop_spark", "write_frames",
)  # fmt: skip


def records_of_logs(place: Path, release: str | None, report: Callable[[str], object]) -> tuple[list[Record], str]:
    """Return the journal of the broker logs in a file or folder, and their release; `report` gets a sentence per refused file.

    Raises UserError for a path without a log, and if Spark or Java is missing.
    """
    log_files([place])  # refuses a folder without logs before Spark starts
    with open_session() as spark, tempfile.TemporaryDirectory(prefix="kcontrol-logs-") as folder:
        from kcontrol.pipeline.log_journal.fact_lines import logs_of
        from kcontrol.pipeline.logs import log_tables

        out = Path(folder) / "tables"
        for refused in log_tables.write_logs(spark, [place], out).refused:
            report(refused.reason)
        logs = logs_of(spark.read.parquet(str(out / "records")), release)
        return list(journal_file.check(to_journal(logs.lines(), logs.release, logs.brokers, zone=logs.zone))), logs.release


def claimed(out: Path, tables: Sequence[str], form: str) -> AbstractContextManager[None]:
    """Prepare a folder for tables of a `form`, such as "tables of a sweep"; what was created is removed if the block raises.

    Raises UserError if the folder has other files.
    """
    from kcontrol.pipeline import pipeline

    return pipeline.claimed(out, tables, {"kcontrol": form, "version": pipeline.VERSION})


def write_frames(out: Path, frames: Mapping[str, pd.DataFrame]) -> None:
    """Write each table as Parquet into a folder of its own, in place of the former tables in `out`, which is claimed."""
    from kcontrol.pipeline import pipeline

    with pipeline.sentences(out):
        for name, frame in frames.items():
            folder = out / pipeline.NEW / name
            folder.mkdir(parents=True)
            frame.to_parquet(folder / "part-0.parquet", index=False)
        pipeline.publish(out, list(frames))
