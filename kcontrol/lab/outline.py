"""A run as plain text, and as a page: what the command line shows of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kcontrol.lab.moment import Moment
from kcontrol.views import kafka_words, text

DONE = 2  # the weight of what somebody does to the cluster


def told(run: Moment) -> str:
    """The state in one line, what was done to the cluster, and each partition as it stands at the end."""
    done = text.lines(record for record in run.records if text.weight(record) >= DONE)
    return "\n".join([text.clean(repr(run)), *done, *(_partition(name, row) for name, row in run.partitions().iterrows())])


def _partition(name: Any, row: Any) -> str:
    state = row["state"] if isinstance(row["state"], str) else "no state in the controller's memory"
    where = f"leader {row['leader']}, ISR {row['isr']}, replicas {row['replicas']}, leader epoch {row['leader_epoch']}"
    return f"{text.clean(str(name), 60)}: {state}, {where}"


def in_kafkas_words(run: Moment) -> str:
    """The lines that Kafka's release writes to its own logs, as far as the journal has what they say."""
    return "\n".join(str(line) for lines in kafka_words.in_kafkas_words(run.records) for line in lines)


def page(run: Moment, path: Path) -> str:
    """Write the viewer of a run as a page; return what to do with it. Raises UserError where it cannot be written."""
    from kcontrol.views.twin import write_html

    write_html(run.records, path, title=run.name)
    return f"{path} shows the run: open it in a browser."
