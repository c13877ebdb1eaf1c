"""Fenced writes: transactions that ZooKeeper refuses once another broker has become controller.

Each transaction begins with a check of the version of `/controller_epoch`. Source:
KafkaZkClient.retryRequestsUntilConnected with an expected controller epoch zk version (2.1 on).
"""

from collections.abc import Sequence
from typing import NamedTuple

from kcontrol.core.effects import ControllerMoved, Op, TransactionResult
from kcontrol.core.znodes import CONTROLLER_EPOCH
from kcontrol.zookeeper.port import Client, ConnectionLoss, WriteResult

UNFENCED = -1


class FenceCheckFailed(Exception):
    """The check of `/controller_epoch` failed, but not with BadVersion; `code` is ZooKeeper's name of the error."""

    def __init__(self, code: str) -> None:
        super().__init__(f"the check of {CONTROLLER_EPOCH} failed with {code}")
        self.code = code


class FencedResults(NamedTuple):
    """The results of transactions; each result leaves out the transaction's first operation, the check of `/controller_epoch`.

    `error` is the error of the first check that failed, None if no check failed.
    """

    results: tuple[TransactionResult, ...]
    error: Exception | None


def write(
    client: Client,
    transactions: Sequence[tuple[Op, ...]],
    expected_epoch_zk_version: int,
    answered: list[WriteResult] | None = None,
) -> FencedResults:
    """Perform the transactions; each checks that `/controller_epoch` has the expected version (-1: no check).

    A call that raises ConnectionLoss adds the received results to the list `answered`; a further call with this list sends only
    the transactions without a result.
    """
    if expected_epoch_zk_version < UNFENCED:
        raise ValueError(
            f"the expected version of {CONTROLLER_EPOCH} is {expected_epoch_zk_version}; it should be -1 for none, or a version"
        )
    if expected_epoch_zk_version == UNFENCED:
        return FencedResults(tuple(_result(w, 0) for w in _send(client, transactions, answered)), None)
    check = Op("check", CONTROLLER_EPOCH, b"", expected_epoch_zk_version)
    # A failed check does not undo earlier transactions of the pipeline. With `answered` the next call sends only the other
    # transactions.
    written = _send(client, [(check, *ops) for ops in transactions], answered)
    error = next((_fence_error(w) for w in written if w.error is not None and w.failed_index == 0), None)
    return FencedResults(tuple(_result(w, 1) for w in written), error)


def _send(client: Client, transactions: Sequence[tuple[Op, ...]], answered: list[WriteResult] | None) -> list[WriteResult]:
    """Send the transactions that have no result in `answered` yet, add their results, and return `answered`.

    `answered` has the results of the first transactions, in order; None means that no result has arrived.

    Source: KafkaZkClient.retryRequestsUntilConnected (2.8), which repeats the requests that met a connection loss.
    """
    answered = [] if answered is None else answered
    try:
        answered += client.write(transactions[len(answered) :])
    except ConnectionLoss as loss:
        answered += loss.answered
        raise
    return answered


def _fence_error(written: WriteResult) -> Exception:
    return ControllerMoved() if written.error == "BadVersion" else FenceCheckFailed(written.error or "")


def _result(w: WriteResult, offset: int) -> TransactionResult:
    if w.error is None:
        return TransactionResult("OK", -1, w.versions[offset:], w.zxid, w.paths[offset:])
    return TransactionResult(w.error, w.failed_index - offset, (), w.zxid)
