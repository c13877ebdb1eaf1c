"""Writes that count only while this broker is controller: each is a transaction that first checks `/controller_epoch`.

Source: KafkaZkClient.retryRequestsUntilConnected with an expected controller epoch zk version (2.1 on).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kcontrol.effects import ControllerMoved, Op, Result
from kcontrol.runtime.zookeeper import Client, ConnectionLoss, Written
from kcontrol.znodes import CONTROLLER_EPOCH

UNFENCED = -1


class FenceBroken(Exception):
    """The check of `/controller_epoch` failed for another reason than its version; `code` is ZooKeeper's."""

    def __init__(self, code: str) -> None:
        super().__init__(f"the check of {CONTROLLER_EPOCH} failed with {code}")
        self.code = code


class Fenced(NamedTuple):
    """What was performed: a result per transaction, as if there were no fence, and the error of the fence if it failed."""

    results: tuple[Result, ...]
    error: Exception | None


def write(client: Client, transactions: Sequence[tuple[Op, ...]], fence: int, answered: list[Written] | None = None) -> Fenced:
    """Perform the transactions in one pipeline, each checking that `/controller_epoch` is at version `fence`; -1 checks nothing.

    A failed check does not undo what the pipeline did before it. If the connection is lost on the way, `answered` keeps what had
    been answered, so that the next try sends the others alone. Raises ValueError for a fence below -1.
    """
    if fence < UNFENCED:
        raise ValueError(f"the expected version of {CONTROLLER_EPOCH} is {fence}; it should be -1 for none, or a version")
    if fence == UNFENCED:
        return Fenced(tuple(_result(w, 0) for w in _send(client, transactions, answered)), None)
    check = Op("check", CONTROLLER_EPOCH, b"", fence)
    written = _send(client, [(check, *ops) for ops in transactions], answered)
    error = next((_fence_error(w) for w in written if w.error is not None and w.failed == 0), None)
    return Fenced(tuple(_result(w, 1) for w in written), error)


def _send(client: Client, transactions: Sequence[tuple[Op, ...]], answered: list[Written] | None) -> list[Written]:
    """Source: KafkaZkClient.retryRequestsUntilConnected (2.8), which repeats the requests that met a connection loss."""
    answered = [] if answered is None else answered
    try:
        answered += client.write(transactions[len(answered) :])
    except ConnectionLoss as loss:
        answered += loss.answered
        raise
    return answered


def _fence_error(written: Written) -> Exception:
    return ControllerMoved() if written.error == "BadVersion" else FenceBroken(written.error or "")


def _result(w: Written, offset: int) -> Result:
    if w.error is None:
        return Result("OK", -1, w.versions[offset:], w.zxid, w.paths[offset:])
    return Result(w.error, w.failed - offset, (), w.zxid)
