"""The type of a design: all tables of one controller, as one value.

Theory. Kafka has built its controller three times. Each design has a page with its tables:
`event_thread.py` (1.1 to 3.9), `earlier/event_queue_0_11.py` (0.11 and 1.0) and
`earlier/listeners_to_0_10.py` (0.8.0 to 0.10.2). A page holds the threads with their locks, the
events with their handlers, the watches, and the steps of failover and resignation. It ends with one
value of the type Design, or with a function that returns the Design of a release.

Rules of the file:

* A context has a field with its Design, and a handler reads it there. So a module of 2.8 names a
  field of Design and never an earlier release.
* A field is a table, or a function that at least two designs implement in different ways. Such a
  function keeps the difference out of the handlers: no handler compares the name of a design.
* Only `handlers.py` may import `earlier/`; `lint-imports` checks this.

What a Design does not say: the value of a rule (a difference between releases). Rules that differ
within one design, or that more than one design uses, are fields of `core/controller_rules.py`. A
rule that differs only between releases before 1.1 is used in `earlier/`, with these exceptions:

* `design` (`handlers.py`) picks the page.
* `pipelined` (`partition_machine.py`, `replica_machine.py`) decides whether the subjects of a call
  make their transitions together, in common round trips to ZooKeeper, or one after the other.
* `offline_order`, `shutdown_order` (`partition_machine.py`) become the field `ElectionInput.order`:
  a user's function that replaces an election of `leader_election.py` gets this field too.
* `unclean_default`, `deletes_topics`: the default of a setting in the release.

Read next: `event_thread.py`, the page that fills every field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from kcontrol.core.effects import Handler, Znode
from kcontrol.core.events import (
    ControllerState,
    Event,
    PartitionReassignmentIsrChange,
    ZkPartitionReassignment,
)
from kcontrol.core.model import LeaderAndIsr, PartitionReplica, ReplicaState, TopicPartition
from kcontrol.core.releases import value_in_force
from kcontrol.core.znodes import parse_state_path

if TYPE_CHECKING:
    from kcontrol.controller.context import ControllerContext
    from kcontrol.controller.request_batch import Requests

Step = Callable[["ControllerContext"], Handler]
Replicas = list[PartitionReplica]
InGroups = Callable[[Mapping[int, Replicas], Iterable[int], int], Sequence[Replicas]]


class ThreadRow(NamedTuple):
    """One row of the table THREADS of a release's controller: a thread of each broker process."""

    # Such as "main", which runs the start of the broker.
    name: str
    # "controller" or "broker": the memory that the thread's handlers use.
    context_name: str
    # Threads with the same lock take turns. A thread with None needs no lock.
    lock: str | None


class Row(NamedTuple):
    """One row of a design's table EVENTS: the handler of one type of event."""

    # The name under which Kafka's metrics count the time of the handler.
    state: ControllerState
    # If true, only the controller calls the handler; other brokers ignore the event.
    only_if_active: bool
    handler: Callable[[ControllerContext, Any], Handler]


EventRow = tuple[type[Event], ControllerState, bool, Callable[["ControllerContext", Any], Handler]]
EventGroup = tuple[type[Event], bool, Callable[["ControllerContext", Any], Handler]]


class WatchRow(NamedTuple):
    """A rule for ZooKeeper's notifications: which notifications queue the controller event `event`.

    The notification has the type `change`, and its path matches the regular expression `path`.
    """

    # Such as "NodeCreated"; up to 0.10.2 "data" or "children".
    change: str
    path: str
    event: type[Event]


class ReassignmentProtocol(NamedTuple):
    """The functions with which a controller of one release reassigns partitions."""

    # The step of a failover before the partition and replica state machines start: it reads the
    # requested reassignments into the context, or does nothing (in 0.8.0 and since 2.4).
    initialize: Step
    # The step of a failover after the machines have started: it starts these reassignments. Where
    # `initialize` does nothing, it also reads them.
    trigger_pending: Step
    # The handler of a change of `/admin/reassign_partitions`.
    on_request: Callable[[ControllerContext, ZkPartitionReassignment], Handler]
    # The handler of a change of the state znode of a partition in a reassignment.
    on_isr_change: Callable[[ControllerContext, PartitionReassignmentIsrChange], Handler]
    # Resumes the reassignments that wait for these brokers, which have started.
    on_broker_startup: Callable[[ControllerContext, Collection[int]], Handler]


class MachineDecisions(NamedTuple):
    """The functions of the partition and replica state machines that differ before 1.1.

    A field with the default None is a step that only those releases have.
    """

    # Returns for each of these topics whether it allows unclean elections.
    unclean_allowed: Callable[[ControllerContext, Iterable[str]], Handler]
    # Gets the RequestBatch, replicas of partitions without leadership, and a state. Since 1.1 the
    # function moves the replicas to this state; up to 1.0 it refuses the transition with a record.
    move_without_leadership: Callable[[ControllerContext, Any, Replicas, ReplicaState], Handler]
    # For a replica whose partition has no state znode: True if the replica keeps its state without
    # a journal record, False if the journal gets a record of the failed transition.
    ignores_missing_state_znode: Callable[[ControllerContext, PartitionReplica], bool]
    # Returns the brokers that receive LeaderAndIsr with the new leadership after this replica has
    # left the ISR; None means no request.
    receivers_of_smaller_isr: Callable[
        [ControllerContext, PartitionReplica, LeaderAndIsr], tuple[int, ...] | None
    ]
    # Before 0.9: reads the assignments of partitions into the context again before they become New.
    before_new: Callable[[ControllerContext, Sequence[TopicPartition]], Handler] | None = None
    # Returns whether a preferred election of the partition is left out, since the preferred replica
    # leads; gets the leadership in the state znode, None without the znode.
    is_election_needless: (
        Callable[[ControllerContext, TopicPartition, LeaderAndIsr | None], bool] | None
    ) = None
    # Reads the leadership for the LeaderAndIsr of these new replicas, by partition; else it is that
    # in the context.
    leadership_for_new: (
        Callable[[ControllerContext, Sequence[PartitionReplica]], Handler] | None
    ) = None
    # Returns the topics whose partitions may lose their last ISR member; gets the replicas that
    # leave the ISR, and the state znode of each replica's partition (None: missing).
    topics_allowing_empty_isr: (
        Callable[[ControllerContext, Sequence[PartitionReplica], Sequence[Znode | None]], Handler]
        | None
    ) = None
    # Returns the partitions that become Offline after these brokers have failed; else they are all
    # partitions whose leader is not online.
    leaderless: (
        Callable[[ControllerContext, Collection[int]], tuple[TopicPartition, ...]] | None
    ) = None


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """The controller of one release: threads, handlers, watches, failover and resignation steps.

    Functions that differ between designs, such as those of a reassignment, are fields too.
    """

    # The value of the rule `design`, such as "one event thread".
    name: str
    threads: tuple[ThreadRow, ...]
    # The thread that handles every event but those of `routes`.
    default_thread: str
    # The name of the thread by type of event.
    routes: Mapping[type[Event], str]
    handlers: Mapping[type[Event], Row]
    watches: tuple[WatchRow, ...]
    # Returns the event that a notification of this type and path queues; None for no event.
    event_for_notification: Callable[[str, str], Event | None]
    # By type of notification, such as "NodeCreated": the kinds of handlers that it calls. False is
    # the handler of the data of its path, True is the handler of the children.
    handler_kinds: Mapping[str, tuple[bool, ...]]
    failover: tuple[Step, ...]
    resignation: tuple[Step, ...]
    reassignment: ReassignmentProtocol
    # Functions that return the events of an expired session, queued before the next session opens.
    on_expiry: tuple[Callable[[], Event], ...]
    # Functions that return the events of a new session; they get the broker's host and port, and
    # the id of the ZooKeeper session.
    on_new_session: tuple[Callable[[str, int, int], Event], ...]
    # Whether ZkClient calls all listeners after a new session.
    has_listeners: bool

    # Competes for a free `/controller`, and runs the failover after a success; gets the time in ms
    # for `/controller`.
    elect: Callable[[ControllerContext, int], Handler]
    # Whether a broker is controller while it has channels, and not by the id in `/controller`.
    active_by_channels: bool
    # Whether a machine refuses every transition until a step of the failover starts it.
    starts_machines: bool
    # Tries to delete the queued topics or, with a delete-topics thread, signals this thread.
    resume_deletions: Step
    machines: MachineDecisions
    # Before 1.1: raises an error if the broker has no channels to brokers any more.
    require_channels: Step | None = None
    # Up to 2.5, divides replicas into groups: the replica state machine moves one group after the
    # other. Gets the replicas by broker id, and of a Scala Set of replicas, whose order is Kafka's,
    # the broker ids in order (() if ascending) and the size (0: the number of replicas in the first
    # parameter). Since 2.6: `champ_order`.
    in_groups: InGroups | None = None
    # Before 2.2, adds partitions to those for which a handler requests UpdateMetadata.
    metadata_partitions: (
        Callable[[ControllerContext, Iterable[TopicPartition]], Iterable[TopicPartition]] | None
    ) = None
    # Up to 2.5, divides the requests of one batch as the release sends them.
    requests_to_send: Callable[[ControllerContext, Requests], Iterable[Requests]] | None = None


# ---------------------------------------------------------------- the tables of a page


def handlers_of(rows: Iterable[EventRow]) -> dict[type[Event], Row]:
    return {
        event: Row(state, only_if_active, handler) for event, state, only_if_active, handler in rows
    }


def events_by_state(groups: Mapping[ControllerState, list[EventGroup]]) -> tuple[EventRow, ...]:
    """`groups` maps a state to its rows (event, only if active, handler)."""
    rows = [(state, *row) for state, group in groups.items() for row in group]
    return tuple((event, state, if_active, handler) for state, event, if_active, handler in rows)


def column(
    table: Iterable[tuple[Any, ...]], releases: Sequence[str], release: str
) -> tuple[Step, ...]:
    """Return the steps of `release`, in the order of their execution.

    A row of `table` has a step and, for each of `releases`, its place in the order (0: no step
    there). Raises IndexError for a release before the first.
    """
    # A release that is not in `releases` has the steps of the latest release before it.
    place = value_in_force([(since, at) for at, since in enumerate(releases, 1)], release)
    rows = sorted((row for row in table if row[place]), key=lambda row: int(row[place]))
    return tuple(row[0] for row in rows)


# How a group of a pattern becomes a field of an event; a group that is not here stays a string.
READ: dict[str, Callable[[str], Any]] = {"broker_id": int, "partition": parse_state_path}


def event_for_notification(rows: Iterable[WatchRow], notification: str, path: str) -> Event | None:
    """Return the event of the first row of `rows` that fits a notification, None if no row fits.

    `notification` is the type, such as "NodeCreated". Named groups of the row's pattern become the
    event's fields.
    """
    for change, pattern, event in rows:
        if change == notification and (match := _compiled(pattern).fullmatch(path)):
            return event(
                **{name: READ.get(name, str)(text) for name, text in match.groupdict().items()}
            )
    return None


@lru_cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


# ---------------------------------------------------------------- what every design does with them


def on_controller_failover(ctx: ControllerContext) -> Handler:
    """Run the steps `ctx.design.failover`, after the election of this broker as controller.

    Source: KafkaController.onControllerFailover (2.8).
    """
    for step in ctx.design.failover:
        yield from step(ctx)


def on_controller_resignation(ctx: ControllerContext) -> Handler:
    """Run the steps `ctx.design.resignation`; the watch of `/controller` stays registered.

    Source: KafkaController.onControllerResignation (2.8).
    """
    for step in ctx.design.resignation:
        yield from step(ctx)
