"""A run asked with Spark."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from kcontrol.errors import UserError
from kcontrol.lab.missing import Missing
from kcontrol.lab.saying import say
from kcontrol.pipeline.gateway import spark_session, stop_spark

if TYPE_CHECKING:
    from kcontrol.lab.lab import Lab


def session(lab: Lab, *, optional: bool) -> Any:
    """A session in which this lab's run is the views `journal` and `leaderships`, or what stands in for one; see `Lab.spark`."""
    try:
        if lab.path is None:
            raise UserError(
                "This run has no journal in a file, which Spark would read: open a lab with runs=, or use lab.save(path)."
            )
        spark = spark_session()
    except UserError as problem:
        if not optional:
            raise
        say(str(problem))
        return Missing(str(problem))
    from kcontrol.pipeline import tables

    tables.register(spark, lab.path)
    if lab not in _asking:
        _asking.add(lab)
        lab.closing.callback(_leave, lab)
    return spark


_asking: weakref.WeakSet[Lab] = weakref.WeakSet()


def _leave(lab: Lab) -> None:
    """Spark ends with the last lab that has asked it."""
    _asking.discard(lab)
    if not _asking:
        stop_spark()
