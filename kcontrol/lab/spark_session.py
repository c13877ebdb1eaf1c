"""Opens the Spark session in which a learner queries the journal of a lab, and stops Spark after the last lab."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from kcontrol.core.errors import UserError
from kcontrol.lab.run import Run
from kcontrol.lab.support import arguments
from kcontrol.lab.support.missing_parts import part_or_substitute
from kcontrol.lab.support.output import Shown
from kcontrol.pipeline.door import spark_session, spark_views, stop_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kcontrol.lab.lab import Lab


def session(lab: Lab, *, optional: bool, master: str) -> Any:
    """Return a Spark session with a view of this lab's run for each table of the whole run, such as `journal`.

    `master` is Spark's address. Without Spark or Java raise UserError; with `optional` print the error's text instead, and return
    a substitute (MissingPart) that shows this text.
    """
    return part_or_substitute(lambda: _session_with_views(lab, master), optional=optional)


def _session_with_views(lab: Lab, master: str) -> SparkSession:
    """Return a session of Spark at the address `master` with the views of this lab's run.

    Raises UserError if the run has no file, or if Spark or Java is missing.
    """
    if lab._file.path is None:
        raise UserError(
            'Spark reads the journal from a file, and this run has no file: open the lab with runs=, such as runs="runs".'
        )
    spark = spark_session(master)
    spark_views.register(spark, lab._file.path)
    if lab not in _labs_using_spark:
        _labs_using_spark.add(lab)
        # Spark is stopped when the last lab that uses it is closed.
        lab._closing.callback(_release_spark, lab)
    return spark


def table_sql(run: Run, name: str) -> Shown:
    """The SQL text by which Spark makes a table, such as "elections", of the journals of one or many runs.

    Raises UserError, listing the tables, for an unknown name.
    """
    return Shown(spark_views.table_sql(arguments.one_of(name, spark_views.TABLES, "table")))


_labs_using_spark: weakref.WeakSet[Lab] = weakref.WeakSet()


def _release_spark(lab: Lab) -> None:
    """Remove `lab` from the labs that use Spark, and stop Spark if it was the last of them."""
    _labs_using_spark.discard(lab)
    if not _labs_using_spark:
        stop_spark()
