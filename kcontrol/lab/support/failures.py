"""Counts the failures while a lab runs (lost connections to ZooKeeper, errors of handlers), and raises UserError for too many."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

from kcontrol.cluster.consumer_clients import config, consumer_config
from kcontrol.cluster.consumer_configs import SESSION_MS
from kcontrol.cluster.consumer_state import STABLE
from kcontrol.cluster.world import Action, World
from kcontrol.core.effects import SessionExpired
from kcontrol.core.errors import UserError, listed
from kcontrol.journal.journal import Record
from kcontrol.lab.support import replacements
from kcontrol.zookeeper.port import ConnectionLoss

ZOOKEEPER_IS_GONE = "ZooKeeper does not respond: try again when it runs, or close this lab and open another lab."
# The actions of brokers that come before timers and ends of sessions.
TURNS = ("advance", "begin", "deliver_notification", "deliver_request")
PATIENCE = {"connection_loss": 3, "handler_error": 20}
"""The number of records of each kind that ends a run; lost connections count only in successive steps."""
SLEEPS = 100
"""The number of sleeps of a broker's handlers that ends a run: a broker of 0.8 can wait without end for its own registration."""


# A member that polls too late leaves after a rebalance timeout, a rebalance waits for this time at most, and a session ends:
# three of the longest times are enough for each group that comes to rest.
TIMES = 3
REBALANCES, PER_CONSUMER = 100, 10


class RestCheck:
    """A check for runs in which consumers act by themselves: it ends the run if a group does not stop rebalancing.

    Such a group begins a rebalance again and again: for example, its members join, and each write of the assignment fails.
    """

    def __init__(self, world: World) -> None:
        self._world, self._begun_ms = world, world.now_ms
        thaws = [found.thaws_at_ms for found in world.consumers.values() if found.thaws_at_ms is not None]
        self._ends_ms = max([world.now_ms, *thaws]) + TIMES * _longest_ms(world)
        self._most = REBALANCES + PER_CONSUMER * len(world.consumers)
        self._rebalances: Counter[str] = Counter()

    def check(self, step: Sequence[Record]) -> None:
        """Count the rebalances that begin in the journal records of a step.

        Raises UserError if a group has more rebalances than 100 plus 10 per consumer, and if the run lasts longer than three
        times the longest timeout.
        """
        begun = [r.fields["group_id"] for r in step if r.kind == "group" and r.fields["to"] == "PreparingRebalance"]
        self._rebalances.update(begun)
        if self._world.now_ms > self._ends_ms or any(self._rebalances[group] > self._most for group in begun):
            raise UserError(self._sentence())

    def _sentence(self) -> str:
        seconds, consumers = (self._world.now_ms - self._begun_ms) // 1000, self._world.consumers.values()
        moving = {found.group for found in consumers if found.state != STABLE or found.error not in ("", "NONE")}
        groups = [group for group, many in self._rebalances.most_common() if many > 1] or sorted(moving)
        named = f"Group {listed(groups[:1])} has" if len(groups) == 1 else f"Groups {listed(groups, 9)} have"
        count = f"{sum(self._rebalances.values())} rebalances have begun"
        return (
            f"{named} not come to rest in {seconds:,} s of virtual time, in which {count}: look at lab.tables.rebalances(), or "
            'run for a duration, such as lab.run("60 s", alive=True).'
        )


def _longest_ms(world: World) -> int:
    """Return the longest timeout in ms after which a coordinator or consumer can change a group, such as a session timeout."""
    settings = [consumer_config(world.settings, name) for name in world.consumers]
    coordinators = config(world.settings)
    of_consumers = [time for each in settings for time in (each.rebalance_timeout_ms, int(each[SESSION_MS]))]
    return max([coordinators.initial_delay_ms, coordinators.commit_timeout_ms, *of_consumers])


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
