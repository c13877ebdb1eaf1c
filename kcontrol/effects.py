"""What a handler may ask of the world, and what it is told back.

A handler is a generator. It yields one of these values and is suspended until the driver has answered.

ROUND TRIPS (`Exists`, `Read`, `Children`, `Transaction`, `Writes`, `Commit`, `ReadLog`) are each one step of the world, and
anything may happen between two of them. A `Commit` that writes nothing is instant.

INSTANT effects (`Learn`, `MoveGroup`, `Adopt`, `WriteLog`, `Append`, `Watch`, `Unwatch`, `Send`, `Respond`, `Park`, `Arm`,
`Cancel`, `Enqueue`, `Ask`, `Exit`) are performed within the step, and the handler goes on. `Release` suspends it until it has its
lock again, `Sleep` until
its time has come.

Where a release has no pipelined ZooKeeper client (before 1.1) the driver takes one path, transaction or change per round trip.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, NamedTuple

from kcontrol.model import LeaderAndIsr, PartitionReplica, PartitionState, ReplicaState, TopicPartition

# ---------------------------------------------------------------- what ZooKeeper hands over


class Stat(NamedTuple):
    """The eleven lines of a znode's stat, in the order in which zkCli prints them. Times in ms since 1970."""

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
    """One znode as read."""

    data: bytes
    stat: Stat


class WatchEvent(NamedTuple):
    """A one-shot notification: that something changed, never what it is now."""

    type: Literal["NodeCreated", "NodeDeleted", "NodeDataChanged", "NodeChildrenChanged"]
    path: str


class Op(NamedTuple):
    """One operation of a transaction. `version` -1 means any."""

    kind: Literal["create", "set", "delete", "check"]
    path: str
    data: bytes = b""
    version: int = -1
    ephemeral: bool = False
    sequential: bool = False


class ControllerMoved(Exception):
    """Another broker has become controller: no write of ours counts any more. Source: ControllerMovedException (2.8)."""


class SessionExpired(Exception):
    """ZooKeeper has ended the session that this broker worked under."""


# ---------------------------------------------------------------- round trips


@dataclass(frozen=True, slots=True)
class Exists:
    """Answer: a tuple of `Stat | None`. With `watch`, the next change is notified once, creation of a missing znode included."""

    paths: tuple[str, ...]
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """Answer: a tuple of `Znode | None`. With `watch`, the next change of an existing znode is notified once."""

    paths: tuple[str, ...]
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Children:
    """Answer: a tuple of sorted name tuples, None where the parent is missing. `watch` is about coming and going of children."""

    paths: tuple[str, ...]
    watch: bool = False


class Result(NamedTuple):
    """What became of one transaction: `OK`, or ZooKeeper's name of the first error (`NodeExists`, `NoNode`, `BadVersion`)."""

    code: str
    failed: int = -1
    versions: tuple[int | None, ...] = ()
    zxid: int = 0
    paths: tuple[str, ...] = ()  # as stored, so with the number behind a sequential name; () after an error

    @property
    def is_ok(self) -> bool:
        return self.code == "OK"


@dataclass(frozen=True, slots=True)
class Transaction:
    """All or nothing, never fenced. Answer: one `Result`."""

    ops: tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class Writes:
    """Independent transactions, each fenced where the release fences. Answer: a tuple of `Result`, one for each.

    `ControllerMoved` is thrown into the handler if the fence is gone.
    """

    transactions: tuple[tuple[Op, ...], ...]
    fence: int | None = None  # the expected version of /controller_epoch; None: the one that the context holds


State = PartitionState | ReplicaState
Subject = TopicPartition | PartitionReplica


class StateChange(NamedTuple):
    """One subject's move: memory, znode and journal stand or fall together.

    `value` is what the partition's leadership becomes; `write` says whether its state znode is created, set over
    `value.zk_version`, or left alone. `rule` names the row or election that decided.
    """

    subject: Subject
    source: State
    target: State
    value: LeaderAndIsr | None = None
    write: Literal["create", "set", None] = None
    rule: str = ""


class Refusal(NamedTuple):
    """A move that does not happen, and why. `illegal` tells a missing row of the table from a decision that found no way."""

    subject: Subject
    source: State
    target: State
    reason: str
    illegal: bool = False


class Committed(NamedTuple):
    """The answer to a `Commit`: what was done, what lost a race (BadVersion), what failed for good (code by subject)."""

    done: tuple[StateChange, ...]
    lost: tuple[Subject, ...]
    failed: tuple[tuple[Subject, str], ...]


@dataclass(frozen=True, slots=True)
class Commit:
    """A batch of independent moves, each write fenced where the release fences. Answer: `Committed`.

    In `done` each change carries its leadership with the zk version that the write produced. `ControllerMoved` is thrown into
    the handler if the fence is gone; then memory is as it was.
    """

    changes: tuple[StateChange | Refusal, ...]


class LogBatch(NamedTuple):
    """One batch of a partition's log. `marker`: how a transaction ends here, "commit" or "abort"; "" for records."""

    base_offset: int
    records: tuple[tuple[bytes, bytes | None], ...] = ()
    producer: int | None = None
    marker: str = ""


@dataclass(frozen=True, slots=True)
class ReadLog:
    """Answer: a tuple of `LogBatch` from an offset on, () at the end, None where this broker has no log of the partition."""

    partition: TopicPartition
    offset: int


# ---------------------------------------------------------------- instant effects


@dataclass(frozen=True, slots=True)
class Learn:
    """Change a field of a context outside the machines: first clear, then remove, then put.

    For a mapping `put` is a dict and `remove` its keys; for a set both are members; for a plain field `put` is the new value.
    `context` is `controller`, `broker` or `group`.
    """

    field: str
    put: Any = None
    remove: tuple[Any, ...] = ()
    clear: bool = False
    context: Literal["controller", "broker", "group"] = "controller"


@dataclass(frozen=True, slots=True)
class MoveGroup:
    """A consumer group's move by a row of its table: memory and journal stand together.

    `value` is the group afterwards, None where it leaves the cache; `rule` says why it moves.
    """

    group_id: str
    source: Enum
    target: Enum
    value: Any
    rule: str


@dataclass(frozen=True, slots=True)
class Append:
    """Records for a partition of the offsets topic, on their way.

    When all replicas that must have them do, or it is known that they never will, `then` is queued with `error` and
    `base_offset` filled in. Without `then` nobody waits.
    """

    partition: TopicPartition
    records: tuple[tuple[bytes, bytes | None], ...]
    then: Any = None
    producer: int | None = None


@dataclass(frozen=True, slots=True)
class Adopt:
    """Take over what the request under way says: of all its partitions, or of those named.

    `hosted` takes leadership and replicas, `metadata` the entries as they are. The journal points to the request instead of
    repeating its values.
    """

    field: Literal["hosted", "metadata"]
    partitions: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True)
class WriteLog:
    """Change this broker's log of a partition; `change` is one of the changes of `replica/log.py`."""

    partition: TopicPartition
    change: Any


@dataclass(frozen=True, slots=True)
class Watch:
    """Register the handler of a path: its watch events become events of the queue. Those of a path without one are dropped."""

    path: str
    children: bool = False


@dataclass(frozen=True, slots=True)
class Unwatch:
    """Forget the handler of a path. The watch at the server stays until it fires."""

    path: str
    children: bool = False


@dataclass(frozen=True, slots=True)
class Send:
    """Requests to brokers, put on their channels: a `controller.requests.Requests`, made by folding one batch."""

    requests: Any


@dataclass(frozen=True, slots=True)
class Ask:
    """A request of this broker to the controller (`AlterIsr`, `ControlledShutdown`); the answer comes as an event.

    It goes to broker `to`, or to whomever the broker takes for the controller.
    """

    api: str
    body: Any
    to: int | None = None


@dataclass(frozen=True, slots=True)
class Respond:
    """The answer to the request that came with this correlation id, parked or not."""

    correlation_id: str
    body: Any


@dataclass(frozen=True, slots=True)
class Park:
    """Leave the request with this correlation id unanswered for now; `key` says what it waits for."""

    correlation_id: str
    key: str


@dataclass(frozen=True, slots=True)
class Arm:
    """Start a timer, or start it anew: after `delay_ms` its event is queued. A periodic one is armed again and again."""

    timer: str
    delay_ms: int
    event: Any
    periodic: bool = False


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop a timer; none is no error."""

    timer: str


@dataclass(frozen=True, slots=True)
class Exit:
    """The process stops, and closes its session on the way."""

    exit_code: int


@dataclass(frozen=True, slots=True)
class Complain:
    """An error that Kafka logs before the handler goes on."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Release:
    """Let go of the lock that this thread shares with others; the handler goes on when it has the lock again."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """The thread does nothing for so long, and keeps its lock."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class AwaitRequests:
    """Wait until no request of this broker is out at one of these brokers while that broker is frozen."""

    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Put an event into the queue of a thread, or of the one that is there for it; with `clear`, preempt what waits there."""

    event: Any
    thread: str | None = None
    clear: bool = False


RoundTrip = Exists | Read | Children | Transaction | Writes | Commit | ReadLog | AwaitRequests
Instant = (
    Learn
    | MoveGroup
    | Append
    | Adopt
    | WriteLog
    | Watch
    | Unwatch
    | Send
    | Ask
    | Respond
    | Park
    | Arm
    | Cancel
    | Release
    | Sleep
    | Enqueue
    | Complain
    | Exit
)
Effect = RoundTrip | Instant
Handler = Generator[Effect, Any, Any]
