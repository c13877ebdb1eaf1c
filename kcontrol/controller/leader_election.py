"""The four rules by which a partition gets its next leader, and the table that names the rules.

A rule is a pure function of an assignment, an ISR, and the online brokers.
`partition_machine.elect_leader` increments the leader epoch and writes.

Source: Election.scala and PartitionLeaderElectionAlgorithms (2.8).
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from kcontrol.core.controller_rules import Order


class ElectionInput(NamedTuple):
    """The input of an election: a partition's assigned, ISR, live and target brokers.

    Two settings follow: whether a leader outside the ISR is allowed, and the order of candidates.
    """

    assignment: Sequence[int]
    isr: tuple[int, ...]
    # The online replicas without `shutting_down_brokers`.
    live_replicas: Collection[int]
    # Brokers in a controlled shutdown; only the strategy `controlled_shutdown` reads them.
    shutting_down_brokers: Collection[int] = ()
    # The target replicas of a reassignment.
    target_replicas: Sequence[int] = ()
    # True allows a leader outside the ISR.
    unclean_allowed: bool = False
    # Which candidate wins in `offline` and `controlled_shutdown`: the first in the assignment
    # ("ar") or in the ISR ("isr").
    order: Order = "ar"


class Elected(NamedTuple):
    """The result of an election: the new leader and the new ISR.

    `unclean` says that the new leader was outside the ISR.
    """

    leader: int
    isr: tuple[int, ...]
    unclean: bool = False


def offline(c: ElectionInput) -> Elected | None:
    """Return the first live ISR member; without one, the first live replica if unclean is allowed.

    >>> offline(ElectionInput([1, 2, 3], isr=(3, 2), live_replicas={2, 3}))
    Elected(leader=2, isr=(3, 2), unclean=False)
    >>> offline(ElectionInput([1, 2, 3], isr=(3, 2), live_replicas={2, 3}, order="isr"))
    Elected(leader=3, isr=(3, 2), unclean=False)

    Source: PartitionLeaderElectionAlgorithms.offlinePartitionLeaderElection (2.8).
    """
    live_isr = tuple(b for b in c.isr if b in c.live_replicas)
    if live_isr:
        by_assignment = tuple(b for b in c.assignment if b in live_isr)
        candidates = live_isr if c.order == "isr" else by_assignment
        return Elected(candidates[0], live_isr) if candidates else None
    for broker in c.assignment if c.unclean_allowed else ():
        if broker in c.live_replicas:
            return Elected(broker, (broker,), unclean=True)
    return None


def reassign(c: ElectionInput) -> Elected | None:
    """Return the first target replica that is live and in the ISR; the ISR stays as it is.

    Source: PartitionLeaderElectionAlgorithms.reassignPartitionLeaderElection (2.8).
    """
    return next(
        (Elected(b, c.isr) for b in c.target_replicas if b in c.live_replicas and b in c.isr), None
    )


def preferred(c: ElectionInput) -> Elected | None:
    """Return the first assigned replica, if it is live and in the ISR; the ISR stays as it is.

    Source: PartitionLeaderElectionAlgorithms.preferredReplicaPartitionLeaderElection (2.8).
    """
    return next(
        (Elected(b, c.isr) for b in c.assignment[:1] if b in c.live_replicas and b in c.isr), None
    )


def controlled_shutdown(c: ElectionInput) -> Elected | None:
    """Return the first live ISR member that does not shut down.

    The new ISR has no broker that shuts down. Return None if no member is left.

    Source: PartitionLeaderElectionAlgorithms.controlledShutdownPartitionLeaderElection (2.8).
    """
    staying = tuple(b for b in c.isr if b not in c.shutting_down_brokers)
    # With this order Kafka does not check whether the ISR member is live.
    if c.order == "isr":
        return Elected(staying[0], staying) if staying else None
    live = (*c.live_replicas, *c.shutting_down_brokers)
    return next((Elected(b, staying) for b in c.assignment if b in live and b in staying), None)


class Strategy(NamedTuple):
    """One election strategy: its name, and the function `rule` that elects the leader."""

    name: str
    rule: Callable[[ElectionInput], Elected | None]
    # In words: which brokers then receive LeaderAndIsr.
    recipients: str
    # The exception that Kafka throws before 1.1 if no replica can lead.
    error: str
    # In words: why an election is held.
    note: str


NO_REPLICA, FAILED = "NoReplicaOnlineException", "StateChangeFailedException"

# fmt: off
STRATEGIES = {row.name: row for row in (
    Strategy("offline", offline, "online replicas", NO_REPLICA, "its leader is not online"),
    Strategy("reassign", reassign, "target replicas", NO_REPLICA, "its leader is no target"),
    Strategy("preferred", preferred, "all replicas", FAILED, "its first replica should lead"),
    Strategy("controlled_shutdown", controlled_shutdown, "online or leaving replicas", FAILED,
             "its leader shuts down"),
)}
# fmt: on
