"""The physical plan of a query as a tree of operators, without the ids, paths and expressions that differ from run to run."""

import re
from collections.abc import Iterator
from typing import Any

from kcontrol.core.errors import UserError

LINE = re.compile(r"(?P<prefix>(?:[ :] {2})*(?:[+:]- )?)(?:\*\(\d+\) )?(?P<operator>.+)")
NAMES = re.compile(r"Exchange (?:\w*partitioning|SinglePartition)|Scan In-memory table \w+|FileScan \w+|Scan ExistingRDD|\w+")
PARTITIONED = re.compile(r"Exchange \w+partitioning\(([^()]*), \d+\)")
COLUMN = re.compile(r"#\d+L?")
HIDDEN = {"AdaptiveSparkPlan", "Project", "ColumnarToRow", "WholeStageCodegen", "InputAdapter"}
IN_MEMORY = "InMemoryRelation"


def operators(query: Any) -> str:
    """Return the physical plan of a DataFrame as text, one operator per line, indented below the operator that reads its rows.

    Projections are left out. Raises UserError for a value that is no DataFrame.
    """
    if not hasattr(query, "_jdf"):
        raise UserError("The plan of a query is that of a DataFrame: write plan(spark.sql(...)).")
    return tree(query._jdf.queryExecution().executedPlan().toString())


def tree(plan: str) -> str:
    """Return a physical plan, given as Spark prints it, with one operator's name per line, without projections.

    Each operator is indented below the operator that reads its rows.
    """
    return "\n".join(_lines(plan))


def _lines(plan: str) -> Iterator[str]:
    parents: list[int] = []
    below: int | None = None  # the column of a table in memory, whose own plan is left out
    for line in plan.splitlines():
        if not (match := LINE.fullmatch(line)) or not (name := NAMES.match(match["operator"])):
            continue
        column = len(match["prefix"])
        if below is not None and column >= below:
            continue
        below = column if name[0] == IN_MEMORY else None
        parents = [parent for parent in parents if parent < column]
        if name[0] not in HIDDEN | {IN_MEMORY}:
            by = PARTITIONED.match(match["operator"])
            yield "  " * len(parents) + name[0] + (f"({COLUMN.sub('', by[1])})" if by else "")
            parents.append(column)
