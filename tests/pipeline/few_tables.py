"""A few of the tables of runs, for tests about folders, files and processes: Spark needs a processor second for each table.

The tables are some of each sort: from the journal alone, from other tables, and (in a run without groups) without rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kcontrol.pipeline import pipeline, spark_views
from kcontrol.pipeline.log_journal import evidence
from kcontrol.pipeline.logs import log_tables

TABLES = ("journal", "znode_writes", "partition_states", "leaderships", "transitions", "broker_events", "commits")
OF_LOGS = (*log_tables.TABLES, *(name for name in TABLES if name not in evidence.STEPS))
CODE = f"""
from kcontrol.pipeline import spark_views
spark_views.TABLES = {TABLES}
"""
"""Python's code before any other import of a command."""
COMMAND = [sys.executable, "-c", f"{CODE}\nimport sys\nfrom kcontrol.cli import main\nsys.exit(main())"]


@contextmanager
def few_tables() -> Iterator[None]:
    """Let this process write only the tables of TABLES within the `with` block, as COMMAND does."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(spark_views, "TABLES", TABLES)
        patched.setattr(evidence, "PUBLIC", OF_LOGS[len(log_tables.TABLES) :])
        patched.setattr(pipeline.publish, "__defaults__", (TABLES,))
        yield
