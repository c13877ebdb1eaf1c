"""Counts the failures while a lab runs (lost connections to ZooKeeper, errors of handlers), and raises UserError for too many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING

from kcontrol.core.effects import SessionExpired
from kcontrol.core.errors import UserError
from kcontrol.journal.journal import Record
from kcontrol.lab.support import replacements
from kcontrol.lab.support.rest_check import RestCheck
from kcontrol.zookeeper.port import ConnectionLoss

if TYPE_CHECKING:
    from kcontrol.cluster.world import Action, World

ZOOKEEPER_IS_GONE = "ZooKeeper does not respond: try again when it runs, or close this lab and open another lab."
# The actions of brokers that come before timers and ends of sessions.
TURNS = ("advance", "begin", "deliver_notification", "deliver_request")
PATIENCE = {"connection_loss": 3, "handler_error": 20}
"""The number of records of each kind that ends a run; lost connections count only in successive steps."""
SLEEPS = 100
"""The number of sleeps of a broker's handlers that ends a run: a broker of 0.8 can wait without end for its own registration."""


class FailureCheck:
    """Counts the failed handlers and lost ZooKeeper connections of one `Lab.run`.

    The caller passes the records of each step to `check`, which raises UserError after too many. `repeating` is a broker whose
    handlers fail repeatedly, None if there is none.
    """

    def __init__(self, world: World, *, has_end: bool) -> None:
        # Ends a run of consumers in which a group does not come to rest; None for a run with an end, such as after 12 s.
        self._rest = None if has_end else RestCheck(world)
        # None until the handler of one kind of event has failed twice on one broker, in any two steps; then the broker of the
        # last failure of any handler.
        self.repeating: int | None = None
        self._seen: Counter[str] = Counter()

    def check(self, step: Sequence[Record]) -> None:
        """Count the handler errors and lost ZooKeeper connections in `step`, the journal records of one step.

        Raises UserError if a learner's function raised, after 20 handler errors, after 100 sleeps of a broker's handlers, or
        after 3 lost connections in successive steps.
        """
        if self._rest is not None:
            self._rest.check(step)
        if not any(record.kind == "connection_loss" for record in step):
            self._seen["connection_loss"] = 0
        # Failures of handlers count in the whole run, lost connections in successive steps.
        for record in step:
            self._seen[record.kind] += record.kind in PATIENCE
            if record.kind == "handler_error":
                self._note(record)
            if record.kind == "fire_timer" and record.fields["timer"].startswith("sleep-"):
                self._note_sleep(record.id.node)
        if self._seen["connection_loss"] == PATIENCE["connection_loss"]:
            raise UserError(ZOOKEEPER_IS_GONE)

    def _note_sleep(self, node: int) -> None:
        self._seen[f"sleeps of {node}"] += 1
        if self._seen[f"sleeps of {node}"] == SLEEPS:
            raise UserError(
                f"The run has stopped: a handler of broker {node} has slept {SLEEPS} times and still waits; lab.journal() shows "
                f"for what, and lab.kill({node}) ends it."
            )

    def _note(self, failure: Record) -> None:
        fields, node = failure.fields, failure.id.node
        if fields["error"] == replacements.RuleFailed.__name__:
            raise UserError(f"The lab has stopped: {fields['message']}.")
        event = f"{fields['event']} on broker {node}"
        self._seen[event] += 1
        if self._seen[event] > 1 or self.repeating is not None:
            self.repeating = node
        if self._seen["handler_error"] == PATIENCE["handler_error"]:
            last = f"{event} ({fields['error']}: {fields['message']})"
            raise UserError(
                f"The run has stopped after {PATIENCE['handler_error']} failures, the last one of {last}: "
                "remove the cause and run again."
            )


def next_action(routine: Iterator[Action], repeating: int | None) -> Action | None:
    """Return the next of the actions in `routine`, which a cluster performs by itself; None if there is none.

    `repeating` is a broker whose handlers fail repeatedly, or None: an action of another broker is returned, if there is one.
    """
    first = next(routine, None)
    if first is None or repeating is None:
        return first
    # Such an action is a step of a thread, a delivery or a request.
    return next((action for action in chain([first], routine) if action[0] in TURNS and action[1] != repeating), first)


@contextmanager
def zookeeper_answers() -> Iterator[None]:
    """Raise UserError if the `with` block raises ConnectionLoss or SessionExpired: ZooKeeper does not respond any more."""
    try:
        yield
    except (ConnectionLoss, SessionExpired):
        raise UserError(ZOOKEEPER_IS_GONE) from None
