"""What goes wrong while a lab runs, said once and in one sentence instead of again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kcontrol.effects import SessionExpired
from kcontrol.errors import UserError
from kcontrol.lab import replacing
from kcontrol.runtime.journal import Record
from kcontrol.runtime.zookeeper import ConnectionLoss

ZOOKEEPER_IS_GONE = "ZooKeeper does not answer: try again once it does, or close this lab and open another one."
PATIENCE = {
    "connection_loss": 3,
    "fail": 20,
}  # how many records of these kinds a run puts up with; losses of a connection in a row


def watch(step: Sequence[Record], seen: Counter[str]) -> None:
    """Raise UserError for what would go wrong again and again if the run went on."""
    if not any(record.kind == "connection_loss" for record in step):
        seen["connection_loss"] = 0
    for record in step:
        seen[record.kind] += record.kind in PATIENCE
        if record.kind == "fail" and record.fields["error"] == replacing.RuleFailed.__name__:
            raise UserError(f"The lab has stopped, because {record.fields['message']}.")
    if seen["connection_loss"] == PATIENCE["connection_loss"]:
        raise UserError(ZOOKEEPER_IS_GONE)
    if seen["fail"] == PATIENCE["fail"]:
        raise UserError(f"The same goes wrong again and again ({PATIENCE['fail']} times): the lab stands where it did last.")


@contextmanager
def zookeeper_answers() -> Iterator[None]:
    """Turn the end of a connection to a real ZooKeeper into UserError."""
    try:
        yield
    except (ConnectionLoss, SessionExpired):
        raise UserError(ZOOKEEPER_IS_GONE) from None
