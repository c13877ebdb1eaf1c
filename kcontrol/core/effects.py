"""The effects: the values that a handler yields, and the values with which the driver resumes it.

A handler is a generator. It yields one of these values and is suspended until the driver sends the
result.

ROUND TRIPS (`Exists`, `Read`, `Children`, `Transaction`, `FencedTransactions`, `Commit`, `ReadLog`)
are each one step of the world (`cluster/world.py`), and anything may happen between two of them. A
`Commit` that writes nothing is instant.

INSTANT effects (`UpdateContext`, `TransitionGroup`, `ApplyRequest`, `UpdateLog`, `Append`,
`RegisterZNodeHandler`, `UnregisterZNodeHandler`, `Send`, `Respond`, `Park`, `SetTimer`,
`CancelTimer`, `Enqueue`, `SendToController`, `LogError`, `Exit`) are performed within the step, and
the handler continues; after `Exit` a later step ends the process. `YieldLock` suspends the handler
until its thread holds the lock again, `Sleep` until a timer fires, `AwaitInFlightRequests` until no
response is missing.

Before 1.1 the ZooKeeper client is not pipelined: in each round trip the driver performs one path,
one fenced transaction, or one transition of a `Commit`.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, NamedTuple, Self

from kcontrol.core.model import (
    LeaderAndIsr,
    PartitionReplica,
    PartitionState,
    ReplicaState,
    TopicPartition,
)

# ---------------------------------------------------------------- values of ZooKeeper


class Stat(NamedTuple):
    """The eleven fields of a znode's stat, in zkCli's order. Times in ms since 1970."""

    czxid: int
    ctime: int
    mzxid: int
    mtime: int
    pzxid: int
    cversion: int
    version: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int


class Znode(NamedTuple):
    """The data and the stat of one znode, as read."""

    data: bytes
    stat: Stat


class WatchEvent(NamedTuple):
    """A one-shot notification that a znode or its list of children changed, without new data."""

    type: Literal["NodeCreated", "NodeDeleted", "NodeDataChanged", "NodeChildrenChanged"]
    path: str


class Op(NamedTuple):
    """One operation of a ZooKeeper transaction: `kind` creates, sets, deletes or checks a znode.

    The expected version -1 matches every version; a creation ignores it.
    """

    kind: Literal["create", "set", "delete", "check"]
    path: str
    data: bytes = b""
    expected_version: int = -1
    ephemeral: bool = False
    sequential: bool = False


class ControllerMoved(Exception):
    """Another broker has become controller: ZooKeeper refuses every fenced write of this broker.

    Source: ControllerMovedException (2.8).
    """


class SessionExpired(Exception):
    """ZooKeeper has expired the session of this broker; raised in a handler at its round trip."""


# ---------------------------------------------------------------- round trips


@dataclass(frozen=True, slots=True)
class Exists:
    """Check whether znodes exist; the result has the `Stat` of each path, None for a missing znode.

    `watch` sets a watch on each path, which fires when the znode is created, set or deleted.
    """

    paths: tuple[str, ...]
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """Read znodes; the result has the `Znode` of each path, None for a missing znode.

    `watch` sets a watch on each existing znode, which fires when the znode is set or deleted.
    """

    paths: tuple[str, ...]
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Children:
    """Read child names; the result has a sorted tuple of names per path, None for a missing znode.

    `watch` sets a watch for the next creation or deletion of a child.
    """

    paths: tuple[str, ...]
    watch: bool = False


class TransactionResult(NamedTuple):
    """The result of one transaction: `OK`, or ZooKeeper's name of the first error.

    The errors are `NodeExists`, `NoNode` and `BadVersion`. `failed_index` is the position of the
    operation that failed, -1 after a success. After a success `versions` has the new data version
    of each operation's znode, None after a deletion or a check.
    """

    code: str
    failed_index: int = -1
    versions: tuple[int | None, ...] = ()
    zxid: int = 0
    paths: tuple[str, ...] = ()  # with the number of a sequential znode; () after an error

    @property
    def is_ok(self) -> bool:
        return self.code == "OK"


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transaction, all or nothing, without a check of the controller epoch.

    The result is one `TransactionResult`.
    """

    ops: tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class FencedTransactions:
    """Independent transactions; since 2.1 each also checks the version of `/controller_epoch`.

    The result is one `TransactionResult` for each. The driver throws `ControllerMoved` into the
    handler if the check of the version fails. `expected_epoch_zk_version` is the version that is
    checked; None means the version in the controller's context.
    """

    transactions: tuple[tuple[Op, ...], ...]
    expected_epoch_zk_version: int | None = None


def fenced(*ops: Op) -> FencedTransactions:
    """Return the effect that performs each operation in a fenced transaction of its own.

    Fenced means that the transaction checks the version of `/controller_epoch` (2.1 on).
    """
    return FencedTransactions(tuple([(op,) for op in ops]))


State = PartitionState | ReplicaState
Subject = TopicPartition | PartitionReplica


class StateChange(NamedTuple):
    """The transition of one partition or replica, with the write of its state znode.

    `leadership` is the partition's leadership after the transition, or None if the context keeps
    its value. `write` says whether the state znode is created, is set over `leadership.zk_version`,
    or is not written (None). `rule` names the election strategy, or another reason, that decided
    the transition.
    """

    subject: Subject
    source: State
    target: State
    leadership: LeaderAndIsr | None = None
    write: Literal["create", "set", None] = None
    rule: str = ""


class FailedStateChange(NamedTuple):
    """A transition that the partition or replica state machine refuses, with the reason.

    `illegal` is True if the transition table has no row for it, and False if the row's action found
    no solution, such as no live leader.
    """

    subject: Subject
    source: State
    target: State
    reason: str
    illegal: bool = False


class CommitResult(NamedTuple):
    """The result of a `Commit`: the transitions that succeeded, and what failed.

    `finished` has the transitions that succeeded, and `to_retry` the partitions or replicas whose
    write ended in BadVersion. `failed` has a pair for each other failure: the partition or replica,
    and ZooKeeper's name of the error.
    """

    finished: tuple[StateChange, ...]
    to_retry: tuple[Subject, ...]
    failed: tuple[tuple[Subject, str], ...]


@dataclass(frozen=True, slots=True)
class Commit:
    """Perform independent transitions of partitions or replicas; the result is a `CommitResult`.

    In `finished` the leadership of each change has the zk version that the write produced. Since
    2.1 each write also checks the version of `/controller_epoch`: if the check fails, the driver
    throws `ControllerMoved` into the handler, and the context has not changed.
    """

    changes: tuple[StateChange | FailedStateChange, ...]


class LogBatch(NamedTuple):
    """One batch of a partition's log.

    `marker` is "commit" or "abort" for a control batch, or else "". A record is (key, value): the
    value of a tombstone is None, and a record that no coordinator has written may have the key
    None. After the log cleaner `next_offset`, the offset after the last record, is larger than the
    count of records says; `base_offset` is that of the first record that is left.
    """

    base_offset: int
    records: tuple[tuple[bytes | None, bytes | None], ...] = ()
    producer_id: int | None = None
    marker: str = ""
    next_offset: int = 0


@dataclass(frozen=True, slots=True)
class ReadLog:
    """Read this broker's log of a partition; the result is a tuple of `LogBatch` from `offset` on.

    The batches are those of one segment that fit into `offsets.load.buffer.size`, at least one; at
    the end of the log the tuple is empty. If the broker does not lead the partition, or has no log
    of the partition, the result is None.
    """

    partition: TopicPartition
    offset: int


# ---------------------------------------------------------------- contexts


class Context:
    """The memory of one broker's controller, broker module or group coordinator, for its handlers.

    Handlers read a context; only the driver changes it, by effects such as `UpdateContext`.
    """

    __slots__: tuple[str, ...] = ()

    def copy(self) -> Self:
        """Return an independent copy: new mappings and sets, which share their immutable values."""
        twin = object.__new__(type(self))
        for name in type(self).__slots__:
            value = getattr(self, name)
            object.__setattr__(twin, name, value.copy() if hasattr(value, "copy") else value)
        return twin


# ---------------------------------------------------------------- instant effects


@dataclass(frozen=True, slots=True)
class UpdateContext:
    """Change the field `field` of a context without a transition of a state machine.

    If `clear`, empty the field first; then remove `remove`, then put `put`. For a mapping `put` is
    a dict and `remove` its keys; for a set both are members; for a plain field `put` is the new
    value. `context` is `controller`, `broker` or `group`.
    """

    field: str
    put: Any = None
    remove: tuple[Any, ...] = ()
    clear: bool = False
    context: Literal["controller", "broker", "group"] = "controller"


@dataclass(frozen=True, slots=True)
class TransitionGroup:
    """The transition of the consumer group `group_id`: the driver changes the group's context.

    The driver also writes one journal record. `group` is the group after the transition, or None if
    the group coordinator removes it from its cache. `rule` is the reason, for the record.
    """

    group_id: str
    source: Enum
    target: Enum
    group: Any
    rule: str


@dataclass(frozen=True, slots=True)
class Append:
    """Append records to a partition of the offsets topic, without waiting for the result.

    A record is (key, value), where the value None is a tombstone. Once the append has succeeded or
    failed, the driver queues `completion_event` with `error` and `base_offset` filled in, unless
    `completion_event` is None.
    """

    partition: TopicPartition
    records: tuple[tuple[bytes, bytes | None], ...]
    completion_event: Any = None
    producer_id: int | None = None


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """Store a LeaderAndIsr or UpdateMetadata request, the handler's event, in the broker's context.

    Only the entries of `partitions` are stored, or all entries if `partitions` is None. `field`
    names the changed field of the context: "hosted" gets leadership and replicas from LeaderAndIsr,
    "metadata" gets the entries of UpdateMetadata unchanged. The journal's record has the id of the
    request in place of the entries.
    """

    field: Literal["hosted", "metadata"]
    partitions: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True)
class UpdateLog:
    """Change this broker's log of a partition.

    `change` is one of the changes that `broker/log.py` defines, such as AppendRecords or Truncate.
    """

    partition: TopicPartition
    change: Any


@dataclass(frozen=True, slots=True)
class RegisterZNodeHandler:
    """Register the handler of a path: the driver queues an event for each watch event of the path.

    With `children` the event is queued for changes of the path's children, else for changes of its
    data. Watch events of a path without a handler are dropped.
    """

    path: str
    children: bool = False


@dataclass(frozen=True, slots=True)
class UnregisterZNodeHandler:
    """Unregister the handler of a path. The watch in ZooKeeper stays until it fires.

    With `children` this is the handler of the path's children, else the handler of its data.
    """

    path: str
    children: bool = False


@dataclass(frozen=True, slots=True)
class Send:
    """Send LeaderAndIsr, UpdateMetadata and StopReplica requests to brokers.

    `requests` is a `controller.request_batch.Requests`, which has the requests by broker.
    """

    requests: Any


@dataclass(frozen=True, slots=True)
class SendToController:
    """Send a request of this broker to the controller; the response arrives as an event.

    `api` is `AlterIsr` or `ControlledShutdown`. The request goes to broker `to`, or, if that is
    None, to the broker that this broker knows as controller; without one the request waits.
    """

    api: str
    body: Any
    to: int | None = None


@dataclass(frozen=True, slots=True)
class Respond:
    """Send the response `body` to the request with this correlation id.

    A handler yields it also for a request whose response an earlier `Park` has delayed.
    """

    correlation_id: str
    body: Any


@dataclass(frozen=True, slots=True)
class Park:
    """Delay the response to the request with this correlation id until a later `Respond`.

    `key` names the condition for which the response waits; it is a field of the journal record.
    """

    correlation_id: str
    key: str


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Start or restart a timer, whose event is queued after `delay_ms`.

    The handler of the event of a `periodic` timer sets this timer again. With `is_complete` start
    no timer, and cancel the timer of this name if it is set. That is for the timer of a delayed
    operation of Kafka, if the operation is complete already.
    """

    timer: str
    delay_ms: int
    event: Any
    periodic: bool = False
    is_complete: bool = False


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Cancel a timer if it is set; do nothing if it is not set.

    With `is_complete` False the timer stays set. That is for the timer of a delayed operation of
    Kafka which a checkAndComplete has found not complete; the driver writes this checkAndComplete
    to the journal if the run's Settings have `purgatory`.
    """

    timer: str
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class Exit:
    """End the process with this exit code; its session is closed."""

    exit_code: int


@dataclass(frozen=True, slots=True)
class LogError:
    """Write to the journal an error that Kafka only logs; the handler continues."""

    error: Exception


@dataclass(frozen=True, slots=True)
class YieldLock:
    """Release the thread's lock; the handler continues once the thread holds the lock again."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """Suspend the thread for `delay_ms`; the thread keeps its lock."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class AwaitInFlightRequests:
    """Suspend the thread until the frozen brokers of `brokers` have responded to this broker.

    A broker is frozen if its process is stopped (as by SIGSTOP). The thread does not wait for a
    broker that is not frozen, nor for a broker to which no request of this broker is in flight.
    """

    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Put an event into the queue of `thread`, or of the thread that handles events of this type.

    With `clear` the events that wait in that queue are removed first. `cause` is the id of the
    journal record that caused the event; None means the record of the beginning of the handler.
    """

    event: Any
    thread: str | None = None
    clear: bool = False
    cause: Any = None


# fmt: off
RoundTripEffect = (
    Exists | Read | Children | Transaction | FencedTransactions | Commit | ReadLog
    | AwaitInFlightRequests
)
InstantEffect = (
    UpdateContext | TransitionGroup | Append | ApplyRequest | UpdateLog | RegisterZNodeHandler
    | UnregisterZNodeHandler | Send | SendToController | Respond | Park | SetTimer | CancelTimer
    | YieldLock | Sleep | Enqueue | LogError | Exit
)
# fmt: on
Effect = RoundTripEffect | InstantEffect
Handler = Generator[Effect, Any, Any]
