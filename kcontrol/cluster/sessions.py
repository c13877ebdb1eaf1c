"""SESSION_TRANSITIONS: the states of a living broker's ZooKeeper session, and the action of each transition.

A session ends in ZooKeeper first, and its broker finds out later. So the session of a broker that lives is in one of three
states:

* `open`: ZooKeeper has the session, and the broker's ephemeral znodes.
* `expired`: ZooKeeper has ended the session and deleted the znodes. The broker does not know yet:
  its calls fail, and a controller in this state still believes that it is the controller.
* `expiring`: the client library has reported the end, and the event Expire is first in the queue of the controller's thread. No
  new session is opened before Expire has begun. Only designs with this event (`Design.on_expiry`, since 1.1) have this state;
  before 1.1 ZkClient opened a new session at once, so that an expired session was followed by an open session.

Rules: `lifecycle.py` calls `move`, which runs the action of the row from the present state to the new state; if there is no such
row, the code is wrong, and `move` raises ValueError. The action of a row changes the process; `lifecycle.py` writes the journal
records and queues the events.

What the table does not say: a session whose process has ended is an `OrphanedSession` until it expires, since no client library
waits for the notification. The rows `renew`, `reconnect` and `expire_session` of ACTIONS in `actions.py` say when each transition
is possible. Read `lifecycle.expire_session` and `lifecycle.renew_session` next.

Source: ZooKeeperClient.scala, KafkaController.Expire and RegisterBrokerAndReelect (2.8);
KafkaController.SessionExpirationListener, ZkClient.processStateChanged (0.8 to 1.0).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from kcontrol.core.transitions import Transition, TransitionTable

if TYPE_CHECKING:
    from kcontrol.cluster.process import Process


class SessionState(StrEnum):
    """The states of the ZooKeeper session of a broker whose process runs."""

    OPEN = "open"
    # ZooKeeper has ended the session, and the broker has not been notified of this.
    EXPIRED = "expired"
    # The broker's client library has reported the end: the event Expire is in the queue of the controller's thread (since 1.1).
    EXPIRING = "expiring"


OPEN, EXPIRED, EXPIRING = SessionState


def cut_off(p: Process) -> None:
    """Let the broker's calls to ZooKeeper fail, and drop the watch events that it has not handled."""
    p.driver.has_lost_session, p.was_sent_request = True, False
    p.notifications.clear()


def mark(p: Process) -> None:
    """Do nothing: this is the action of the transition from EXPIRED to EXPIRING, which changes only the session's state."""


def connect(p: Process) -> None:
    """Let the broker's calls to ZooKeeper succeed again, under the new session that the caller has opened and stored."""
    p.driver.has_lost_session = False


# fmt: off
SESSION_TRANSITIONS = TransitionTable("session", SessionState, "ZooKeeperClient.scala (2.8), ZkClient.java (0.8 to 1.0)", [
    #          from      to        action   what it means
    Transition(OPEN,     EXPIRED,  cut_off, "ZooKeeper has ended the session; the broker does not know yet"),
    Transition(EXPIRED,  EXPIRING, mark,    "since 1.1: the client library reports the end, and Expire is queued"),
    Transition(EXPIRED,  OPEN,     connect, "before 1.1: ZkClient opens another session at once"),
    Transition(EXPIRING, OPEN,     connect, "Expire has begun, and the client library opens another session"),
])
# fmt: on


def move(p: Process, target: SessionState) -> None:
    """Raises ValueError without a row in SESSION_TRANSITIONS."""
    row = SESSION_TRANSITIONS.find(p.session, target)
    if row is None:
        raise ValueError(f"SESSION_TRANSITIONS has no row from {p.session} to {target}.")
    row.action(p)
    p.session = target
