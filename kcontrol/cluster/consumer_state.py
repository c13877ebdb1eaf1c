"""The state of one consumer: its client library's view of the group, and the change of this view by a response.

A consumer is in one of the three states of Kafka's AbstractCoordinator. UNJOINED: the consumer sends JoinGroup next.
COMPLETING_REBALANCE: the response to JoinGroup has arrived, and the consumer sends SyncGroup next. STABLE: the consumer has its
assignment and sends heartbeats; if `rejoin_needed` is set, the consumer sends JoinGroup next.

If the client of a group's leader cannot read the subscription of a member, or the client of a member its own assignment, its
poll throws UNREADABLE, and the application does not poll again. The consumer keeps the partitions that it owns, and since 0.10.1
its heartbeats go on until max.poll.interval.ms has passed (`after_failed_read`).

A consumer of the protocol EAGER revokes all partitions before it joins. A consumer of the protocol COOPERATIVE (KIP-429) keeps
its partitions while it joins. If the new assignment lacks a partition that the consumer owns, the consumer revokes this partition
and joins once more: this is the second round, in which the new owner gets the partition.

Source: AbstractCoordinator.java, ConsumerCoordinator.java: onJoinPrepare, onJoinComplete (0.9, 2.4, 2.8). Read next:
`consumer_clients.py`, which sends the requests.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kcontrol.group import events as e

UNJOINED, COMPLETING, STABLE = "UNJOINED", "COMPLETING_REBALANCE", "STABLE"
POLLING, STUCK, FROZEN, CLOSED = "polling", "not polling", "frozen", "closed"
"""The conditions of a consumer's process: polling, sending heartbeats without polls, stopped by SIGSTOP, closed by LeaveGroup."""

LOST = ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID")
UNREADABLE = "SchemaException"
MOVED = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "disconnected")
"""The errors after which a consumer looks for its coordinator again. Source: markCoordinatorUnknown (0.9, 2.8)."""


class Consumer(NamedTuple):
    """The state of a simulated consumer, with its own view of its group, such as member id and generation."""

    # The group id.
    group: str
    member_id: str = ""
    generation: int = -1
    # From the last response to JoinGroup: the member id of the group's leader, and the chosen assignor.
    leader: str = ""
    protocol: str = ""
    # On the group's leader, each member id with its subscription.
    members: tuple[tuple[str, bytes], ...] = ()
    # The encoded partitions that the consumer owns.
    assignment: bytes = b""
    # The error of the last response ("NONE" for success), "disconnected", or UNREADABLE (after bytes that the client cannot
    # read); "" at first.
    error: str = ""
    # The number of requests that the consumer has sent.
    requests: int = 0
    # The broker whose response is awaited, as (broker, number of the start of its process); None if no response is awaited.
    asked: tuple[int, int] | None = None
    # The group.instance.id; None for a dynamic member.
    instance_id: str | None = None
    # UNJOINED, COMPLETING ("COMPLETING_REBALANCE") or STABLE.
    state: str = UNJOINED
    # Whether the consumer sends JoinGroup next, whatever its state.
    rejoin_needed: bool = False
    # The coordinator that the consumer knows, as (broker, number of the start of its process); None if it knows none.
    coordinator: tuple[int, int] | None = None
    # The assignment in the last successful SyncGroup response, and its generation, for the user data of the sticky assignors.
    last_assignment: bytes = b""
    last_generation: int = -1
    # Of the consumer's process: POLLING, STUCK (sends heartbeats, does not poll), FROZEN (by SIGSTOP) or CLOSED (by LeaveGroup).
    condition: str = POLLING
    # The time at which the consumer last sent a request or received a response.
    active_at_ms: int = 0
    # The time of the last poll of a consumer in the condition STUCK.
    polled_at_ms: int = 0
    # The time at which a frozen process thaws by itself; None without such a time.
    thaws_at_ms: int | None = None

    def without_membership(self) -> Consumer:
        return Consumer(self.group, requests=self.requests, instance_id=self.instance_id)

    def after_loss(self, error: str) -> Consumer:
        """Return the consumer without its member id and its partitions, and with `error` as its last error."""
        return self._replace(
            member_id="", generation=-1, leader="", members=(), assignment=b"", state=UNJOINED, rejoin_needed=False, error=error
        )

    def after_failed_read(self, now_ms: int, *, rejoin_needed: bool) -> Consumer:
        """Return the consumer after its poll could not decode a subscription or an assignment: it does not poll any more.

        `rejoin_needed` says whether the next poll would send JoinGroup.

        Source: joinGroupIfNeeded of AbstractCoordinator.java (2.8), ensureActiveGroup (0.9).
        """
        # A leader joins again, and so does a member of 0.9; since 0.10 a member reads the assignment again.
        return self._replace(error=UNREADABLE, condition=STUCK, polled_at_ms=now_ms, rejoin_needed=rejoin_needed)

    def without_times(self) -> Consumer:
        """Return the consumer with all times 0, for a fingerprint (`fingerprint.py`): times do not affect later steps."""
        return self._replace(active_at_ms=0, polled_at_ms=0, thaws_at_ms=None if self.thaws_at_ms is None else 0)


def after_response(consumer: Consumer, body: Any, has_lost_partitions: bool) -> Consumer:
    """Return the state of a consumer after `body`, the response to its last request.

    `has_lost_partitions` says whether the new assignment lacks partitions that the consumer owns; then the consumer joins once
    more.
    """
    error = error_of(body)
    consumer = consumer._replace(error=error, asked=None, coordinator=None if error in MOVED else consumer.coordinator)
    if error in LOST:
        return consumer.after_loss(error)
    if isinstance(body, e.LeaveResult) and error == "NONE":
        return consumer.after_loss(error)._replace(condition=CLOSED)
    if error == "ILLEGAL_GENERATION":
        return consumer._replace(generation=-1, state=UNJOINED)
    if isinstance(body, e.JoinResult):
        return _after_join(consumer, body)
    if isinstance(body, e.SyncResult) and error == "NONE":
        consumer = consumer._replace(assignment=body.assignment, last_assignment=body.assignment)
        return consumer._replace(last_generation=consumer.generation, state=STABLE, rejoin_needed=has_lost_partitions)
    must_rejoin = error == "REBALANCE_IN_PROGRESS" or isinstance(body, e.SyncResult)
    return consumer._replace(rejoin_needed=consumer.rejoin_needed or must_rejoin)


def error_of(body: Any) -> str:
    """Also "NONE", without an error; of errors per partition or member the first."""
    if isinstance(body, e.ErrorsResult):
        return next(iter(body.errors.values()), body.error)
    if isinstance(body, e.LeaveResult) and body.members:
        return body.members[0]
    return str(body.error)


def _after_join(consumer: Consumer, body: e.JoinResult) -> Consumer:
    if body.error not in ("NONE", "MEMBER_ID_REQUIRED"):
        return consumer._replace(state=UNJOINED)
    consumer = consumer._replace(member_id=body.member_id, generation=body.generation, leader=body.leader, protocol=body.protocol)
    has_joined = body.error == "NONE"
    return consumer._replace(members=body.members, state=COMPLETING if has_joined else UNJOINED, rejoin_needed=False)
