"""Calls a function for each element of a list, such as tasks of a sweep, on Spark's executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def parallelism(spark: SparkSession) -> int:
    """Return the number of tasks that the session's executors run at a time."""
    return int(spark.sparkContext.defaultParallelism)


def flat_mapped(spark: SparkSession, function: Callable[[Any], Iterable[Any]], parts: Sequence[Any]) -> list[Any]:
    """Call `function` with each of `parts`, one Spark task per call; return the elements of its results as one list, in order."""
    # Spark sends the function and the parts by cloudpickle, so a notebook may define the function.
    return list(spark.sparkContext.parallelize(parts, len(parts)).flatMap(function).collect()) if parts else []
