"""The effects: the values that a handler yields, and the values with which the driver resumes it.

A handler is a generator. It yields one of these values and is suspended until the driver sends the
result.

ROUND TRIPS (`Exists`, `Read`, `Children`, `Transaction`, `FencedTransactions`, `Commit`, `ReadLog`)
are each one step of the world (`cluster/world.py`), and anything may happen between two of them. A
`Commit` that writes nothing is instant.

INSTANT effects (`UpdateContext`, `TransitionGroup`, `ApplyRequest`, `UpdateLog`, `Append`,
`RegisterZNodeHandler`, `UnregisterZNodeHandler`, `Send`, `Respond`, `Park`, `SetTimer`,
`CancelTimer`, `Enqueue`, `Submit`, `LogError`, `Exit`) are performed within the step, and the
handler continues; after `Exit` a later step ends the process. `YieldLock` suspends the handler
until its thread holds the lock again, `Sleep` until a timer fires, `AwaitInFlightRequests` until no
response is missing.

Before 1.1 the ZooKeeper client is not pipelined: in each round trip the driver performs one path,
one fenced transaction, or one transition of a `Commit`.
"""

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

    `expected_version` -1 matches every version; a creation ignores `expected_version`.
    """

    kind: Literal["create", "set", "delete", "check"]
    path: str
    data: bytes = b""
    expected_version: int = -1
    ephemeral: bool = False
    # True: ZooKeeper appends a number to the path of the created znode.
    sequential: bool = False


class ControllerMoved(Exception):
    """Another broker has become controller: a check of `/controller_epoch` in a write has failed.

    Source: ControllerMovedException (2.8).
    """


class SessionExpired(Exception):
    """This broker's session has expired; raised in the handler that waits for ZooKeeper."""


# ---------------------------------------------------------------- round trips


@dataclass(frozen=True, slots=True)
class Exists:
    """Check whether znodes exist; the result is a tuple: per path a `Stat`, None without a znode.

    If `watch` is True, each path gets a watch that fires when the znode is created, set or deleted.
    """

    paths: tuple[str, ...]
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """Read znodes; the result is a tuple with the `Znode` of each path, None for a missing znode.

    If `watch` is True, each existing znode gets a watch that fires when the znode is set or
    deleted.
    """

    paths: tuple[str, ...]
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Children:
    """Read child names; the result is a tuple: per path the sorted names, None for a missing znode.

    If `watch` is True, each existing znode gets a watch that fires when a child is created or
    deleted.
    """

    paths: tuple[str, ...]
    watch: bool = False


class TransactionResult(NamedTuple):
    """The result of one transaction: `OK`, or ZooKeeper's name of the first error."""

    # "OK", "NodeExists", "NoNode" or "BadVersion".
    code: str
    # The position of the operation that failed, -1 after a success.
    failed_index: int = -1
    # After a success: the new data version of each operation's znode, None after a deletion or a
    # check.
    versions: tuple[int | None, ...] = ()
    # ZooKeeper's id of the transaction; a failed transaction has an id too.
    zxid: int = 0
    # After a success: the path of each operation's znode; that of a new sequential znode has its
    # number.
    paths: tuple[str, ...] = ()

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

    The result is a tuple with one `TransactionResult` per transaction. If the check fails, the
    driver throws `ControllerMoved` into the handler.
    """

    transactions: tuple[tuple[Op, ...], ...]
    # The version that is checked; None means the version in the controller's context.
    expected_epoch_zk_version: int | None = None


def fenced(*ops: Op) -> FencedTransactions:
    """One transaction per operation; since 2.1 each also checks `/controller_epoch`."""
    return FencedTransactions(tuple([(op,) for op in ops]))


State = PartitionState | ReplicaState
Subject = TopicPartition | PartitionReplica


class StateChange(NamedTuple):
    """The transition of one partition or replica, with the write of its state znode."""

    # The partition or replica, its state before, and its state after the transition.
    subject: Subject
    source: State
    target: State
    # The partition's leadership after the transition, or None if the context keeps its value.
    leadership: LeaderAndIsr | None = None
    # "create" creates the state znode, "set" sets it if its version is `leadership.zk_version`, and
    # None writes nothing.
    write: Literal["create", "set", None] = None
    # What decided the transition: the election strategy, such as "offline", in an election, else a
    # text such as "leaves the ISR".
    rule: str = ""


class FailedStateChange(NamedTuple):
    """A transition that the partition or replica state machine refuses, with the reason."""

    # The partition or replica, the state that it keeps, and the refused state.
    subject: Subject
    source: State
    target: State
    reason: str
    # True if the transition table has no row for the transition, False if the row's action found no
    # solution, such as no live leader.
    illegal: bool = False


class CommitResult(NamedTuple):
    """The result of a `Commit`: the transitions that succeeded, and the failed writes."""

    finished: tuple[StateChange, ...]
    # The write of these partitions or replicas ended in BadVersion.
    to_retry: tuple[Subject, ...]
    # For each other failure: the partition or replica, and ZooKeeper's name of the error.
    failed: tuple[tuple[Subject, str], ...]


@dataclass(frozen=True, slots=True)
class Commit:
    """Perform independent transitions of partitions or replicas; the result is a `CommitResult`.

    If a write's check of `/controller_epoch` fails (2.1 on), the driver throws `ControllerMoved`,
    and the context stays unchanged.
    """

    # In the result each transition's leadership has the zk version that its write produced. A
    # FailedStateChange is only written to the journal.
    changes: tuple[StateChange | FailedStateChange, ...]


class LogBatch(NamedTuple):
    """One batch of a partition's log."""

    # The offset of the batch's first record that the log cleaner has not removed.
    base_offset: int
    # Pairs (key, value): the value of a tombstone is None, and the key can be None in a record that
    # no coordinator has written.
    records: tuple[tuple[bytes | None, bytes | None], ...] = ()
    # The producer of a transactional or control batch, else None.
    producer_id: int | None = None
    # "commit" or "abort" for a control batch, else "".
    marker: str = ""
    # The offset after the last record; the log cleaner may have removed records before it.
    next_offset: int = 0


@dataclass(frozen=True, slots=True)
class ReadLog:
    """Read a partition's log on this broker; the result is a tuple of `LogBatch` from `offset` on.

    At the log's end the result is (). If the broker does not lead the partition or has no log, the
    result is None.
    """

    # The batches are those of one segment that fit into `offsets.load.buffer.size`, at least one.
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
    """Change the field `field` of a context without a transition of a state machine."""

    field: str
    # A dict for a mapping, members for a set, the new value for any other field.
    put: Any = None
    # Keys of a mapping, or members of a set, removed before `put`.
    remove: tuple[Any, ...] = ()
    # True empties the field first.
    clear: bool = False
    context: Literal["controller", "broker", "group"] = "controller"


@dataclass(frozen=True, slots=True)
class TransitionGroup:
    """The transition of the consumer group `group_id`.

    The driver changes the group's context and writes one journal record.
    """

    group_id: str
    # The group's state before and after the transition.
    source: Enum
    target: Enum
    # The group after the transition, or None if the group coordinator removes the group from its
    # cache.
    group: Any
    # The reason, for the journal record.
    rule: str


@dataclass(frozen=True, slots=True)
class Append:
    """Append records to a partition of the offsets topic, without waiting for the result."""

    partition: TopicPartition
    # Pairs (key, value), where the value None is a tombstone.
    records: tuple[tuple[bytes, bytes | None], ...]
    # The event that is queued at the end of the append, with the fields `error` and `base_offset`
    # set to the result of the append; None means no event.
    completion_event: Any = None
    # The producer of a TxnOffsetCommit, else None.
    producer_id: int | None = None


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """Store entries of a LeaderAndIsr or UpdateMetadata request in the context of the broker.

    The request is the event that the thread handles now.
    """

    # The changed field of the context: "hosted" gets the leadership and the replicas in each entry
    # of LeaderAndIsr, "metadata" each entry of UpdateMetadata unchanged.
    field: Literal["hosted", "metadata"]
    # The partitions whose entries are stored; None means all.
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
    """Register a handler: when a watch on the data of `path` fires, the driver queues an event.

    If `children` is True, the handler is for a watch on the children of `path` instead.
    """

    # Watch events of a path without a handler are dropped.
    path: str
    children: bool = False


@dataclass(frozen=True, slots=True)
class UnregisterZNodeHandler:
    """Unregister the handler of a path's data or, if `children` is True, of the path's children.

    The watch stays in ZooKeeper until the watch fires.
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
class Submit:
    """Send a request of this broker to the controller; the response arrives as an event."""

    # "AlterIsr" or "ControlledShutdown".
    api: str
    # For ControlledShutdown a dict with the keys "broker_id" and "broker_epoch"; for AlterIsr a
    # dict from each partition to the `LeaderAndIsr` that the leader requests.
    body: Any
    # The broker id of the receiver; None means the controller that this broker knows. If this
    # broker knows no controller, the request waits.
    to: int | None = None


@dataclass(frozen=True, slots=True)
class Respond:
    """Send the response `body` to the request with this correlation id.

    If the request was parked (`Park`), the request is no longer parked.
    """

    correlation_id: str
    body: Any


@dataclass(frozen=True, slots=True)
class Park:
    """Delay the response to the request with this correlation id until a later `Respond`.

    `key` names what the response waits for, such as "join my-group", in the journal record.
    """

    correlation_id: str
    key: str


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Start or restart a timer, whose event is queued after `delay_ms`."""

    # The name of the timer, such as "controlled-shutdown-retry".
    timer: str
    delay_ms: int
    event: Any
    # True means that the handler of the event sets the timer again.
    periodic: bool = False
    # True: Kafka's delayed operation behind this timer is complete at once. No timer starts then,
    # and a timer of this name that is set is cancelled.
    is_complete: bool = False


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Cancel a timer if it is set; with `is_complete` False the timer stays set."""

    timer: str
    # False: a check (checkAndComplete) has found that Kafka's delayed operation behind the timer is
    # not complete, so the timer goes on. The effect then only writes the check to the journal, if
    # the run's Settings have `purgatory`.
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class Exit:
    """End the process with this exit code, and close its session."""

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
    """Suspend the handler's thread for `delay_ms`; the thread keeps its lock meanwhile."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class AwaitInFlightRequests:
    """Suspend the thread until `brokers` have responded to this broker's requests in flight.

    Only brokers that are frozen (their process is stopped, as by SIGSTOP) are awaited: the other
    brokers respond in any case.
    """

    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Put an event into the queue of `thread`; None means the thread for events of this type."""

    event: Any
    thread: str | None = None
    # True removes the events that wait in that queue first.
    clear: bool = False
    # The id of the journal record that caused the event; None means the record of the beginning of
    # the handler.
    cause: Any = None


# fmt: off
RoundTripEffect = (
    Exists | Read | Children | Transaction | FencedTransactions | Commit | ReadLog
    | AwaitInFlightRequests
)
InstantEffect = (
    UpdateContext | TransitionGroup | Append | ApplyRequest | UpdateLog | RegisterZNodeHandler
    | UnregisterZNodeHandler | Send | Submit | Respond | Park | SetTimer | CancelTimer
    | YieldLock | Sleep | Enqueue | LogError | Exit
)
# fmt: on
Effect = RoundTripEffect | InstantEffect
Handler = Generator[Effect, Any, Any]
