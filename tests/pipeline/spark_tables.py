"""A table of runs as a Spark DataFrame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kcontrol.pipeline.spark_views import register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def made(spark: SparkSession, path: Path, name: str) -> DataFrame:
    """Return the table `name` of the runs in a journal, or in all journals of a folder."""
    register(spark, path, last=name)
    return spark.table(name)
