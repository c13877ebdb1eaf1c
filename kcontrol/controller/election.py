"""Who leads next: four rules, each a pure function of tuples, and the table that names them.

Source: Election.scala and PartitionLeaderElectionAlgorithms (2.8); OfflinePartitionLeaderSelector (0.8.1, 0.8.2).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple


class Candidates(NamedTuple):
    """What an election may look at. `live` are the online brokers; brokers that shut down count only where `leaving` does.

    `order` says whose order decides between several, that of the assignment (`ar`) or that of the ISR (`isr`).
    """

    assignment: Sequence[int]
    isr: tuple[int, ...]
    live: Collection[int]
    leaving: Collection[int] = ()
    target: Sequence[int] = ()
    unclean: bool = False
    order: str = "ar"


class Elected(NamedTuple):
    leader: int
    isr: tuple[int, ...]
    unclean: bool = False


def offline(c: Candidates) -> Elected | None:
    """The first live in-sync replica; where there is none and unclean election is allowed, the first live replica.

    >>> offline(Candidates([1, 2, 3], isr=(3, 2), live={2, 3}))
    Elected(leader=2, isr=(3, 2), unclean=False)
    >>> offline(Candidates([1, 2, 3], isr=(3, 2), live={2, 3}, order="isr"))
    Elected(leader=3, isr=(3, 2), unclean=False)
    """
    live_isr = tuple(b for b in c.isr if b in c.live)
    if live_isr:
        candidates = live_isr if c.order == "isr" else tuple(b for b in c.assignment if b in live_isr)
        return Elected(candidates[0], live_isr) if candidates else None
    for broker in c.assignment if c.unclean else ():
        if broker in c.live:
            return Elected(broker, (broker,), unclean=True)
    return None


def reassign(c: Candidates) -> Elected | None:
    """The first replica of the target that is live and in sync; the ISR stays."""
    return next((Elected(b, c.isr) for b in c.target if b in c.live and b in c.isr), None)


def preferred(c: Candidates) -> Elected | None:
    """The first assigned replica, if it is live and in sync; the ISR stays."""
    return next((Elected(b, c.isr) for b in c.assignment[:1] if b in c.live and b in c.isr), None)


def controlled_shutdown(c: Candidates) -> Elected | None:
    """The first in-sync replica that is not leaving, and lives; whoever leaves is taken out of the ISR.

    In the order of the ISR nobody asks whether it lives.
    """
    staying = tuple(b for b in c.isr if b not in c.leaving)
    if c.order == "isr":
        return Elected(staying[0], staying) if staying else None
    live = (*c.live, *c.leaving)
    return next((Elected(b, staying) for b in c.assignment if b in live and b in staying), None)


class Strategy(NamedTuple):
    """One row: a rule, who is sent LeaderAndIsr afterwards, what is thrown before 1.1 if nobody can lead, and what it is for."""

    name: str
    rule: Callable[[Candidates], Elected | None]
    recipients: str
    error: str
    note: str


NO_REPLICA, FAILED = "NoReplicaOnlineException", "StateChangeFailedException"

# fmt: off
STRATEGIES = {row.name: row for row in (
    Strategy("offline",             offline,             "online replicas",            NO_REPLICA, "its leader is gone"),
    Strategy("reassign",            reassign,            "target replicas",            NO_REPLICA, "its leader is no target"),
    Strategy("preferred",           preferred,           "all replicas",               FAILED,     "the first one should lead"),
    Strategy("controlled_shutdown", controlled_shutdown, "online or leaving replicas", FAILED,     "its leader says goodbye"),
)}
# fmt: on
