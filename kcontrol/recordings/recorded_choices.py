"""Choices of a recording that depend on the state of the world: repeated failovers, and fetches that time out.

A controller whose failover fails resigns, and the next election begins, until a failover succeeds. The number of these failovers,
the winner of each election, and the requests that a controller has sent when it resigns depend on timing; so does the time-out of
a follower's fetch. The player takes all of them from the recording.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from kcontrol.cluster import delayed_responses
from kcontrol.cluster.world import Action, World
from kcontrol.core.effects import Transaction
from kcontrol.core.errors import UserError
from kcontrol.core.znodes import BROKER_IDS, CONTROLLER
from kcontrol.journal.journal import Record
from kcontrol.recordings.recorded_step import RecordedStep, counts

LOCAL = ("advance", "begin", "deliver", "renew", "reconnect")
PATIENCE = 20
"""The number of handlers that may fail in a step in addition to those of its recorded elections."""


class RecordedChoices:
    """The events of one recorded step that depend on timing and that the player has still to repeat, such as elections.

    If the step has more than one election of a controller, `claims` has the (broker, path) of its writes that create
    `/controller` or a broker's registration and that the player has still to repeat, in order; else `claims` is empty.
    """

    def __init__(self, step: RecordedStep, world: World) -> None:
        self.step, self.world, self._began = step.step, world, len(world.journal)
        self.repeats = len(step.winners) > 1
        created: list[tuple[int, str]] = [(w["by"], w["path"]) for w in step.writes if w["op"] == "create"]
        self.claims = deque(c for c in created if self.repeats and (c[1] == CONTROLLER or c[1].startswith(f"{BROKER_IDS}/")))
        self._acting: int | None = None
        self._failed, self._expected = 0, PATIENCE + len(self.claims)
        requests = step.step.get("requests", ()) if self.repeats else ()
        self._unsent = Counter((r["by"], r["to"], r["controller_epoch"]) for r in requests)

    @property
    def _resigns_again(self) -> bool:
        """Whether `/controller` exists and the recorded step has an election still to repeat: then the controller will resign."""
        return self.world.exist(CONTROLLER) == [True] and any(path == CONTROLLER for _, path in self.claims)

    @property
    def next_controller(self) -> int | None:
        """The broker of the first claim in `claims`: the winner of the next recorded election, or a broker that registers before.

        While `_resigns_again` is True, and after the last claim, it is the broker of the claim that was repeated last; None if no
        claim was repeated yet.
        """
        return self.claims[0][0] if self.claims and not self._resigns_again else self._acting

    def watch(self, records: Sequence[Record]) -> None:
        """Count the handlers, such as failovers, that have failed in these journal records, and remove the repeated claims.

        A claim is the creation of `/controller` or of a broker's registration in the recorded step; it is repeated when the
        broker has created this znode. Raises UserError, since the step would never end, if more handlers have failed in the step
        than it had claims, plus the constant PATIENCE.
        """
        for record in records:
            self._failed += record.kind == "handler_error"
            ops = record.fields["ops"] if self.claims and record.kind == "write" and record.fields["error"] is None else ()
            if any(op[0] == "create" and self.claims[0] == (record.id.node, op[1]) for op in ops):
                self._acting = self.claims.popleft()[0]
        if self._failed > self._expected:
            raise UserError(
                f"The step {self.step['do']} never ends, since handlers keep failing: check the scenario and its release."
            )

    def next(self, routine: Sequence[Action]) -> Action | None:
        """Return the next action if the recorded step has several controller elections; else None, and any action may be next.

        `routine` has the actions that the cluster can perform by itself; the result is one of them, or None if none fits.

        A controller sends as many requests as in the recording before it resigns. While a controller that will resign exists, the
        actions of all other brokers come first; at any other time those of `next_controller`.
        """
        if not self.repeats:
            return None
        winner = self.next_controller
        later = {by for by, path in self.claims if path != CONTROLLER} - {winner}
        handling = [a for a in routine if a[0] in LOCAL and a[2:] == ("requests",)]
        due = [a for a in routine if a[0] == "request" and self._unsent[self._key(a)] > 0]
        local = [a for a in routine if a[0] in LOCAL and a[1] not in later]
        others = [a for a in local if a[1] != winner] if self._resigns_again else []
        mine = [a for a in local if a[1] == winner]
        action = [*handling, *due, *others, *mine, *local, *(a for a in routine if a[0] != "request"), *routine][0]
        if action in due:
            self._unsent[self._key(action)] -= 1
        return action

    def _key(self, action: Action) -> tuple[int, int, int]:
        sender, receiver = action[1:]
        return sender, receiver, self.world.network.channels[sender, receiver][0].requests.controller_epoch

    def fetch_timeouts(self) -> list[Action]:
        """Return ("fetch_timeout", broker) for each broker that delays a LeaderAndIsr response until its fetch times out.

        Such a fetch goes to a frozen leader. A broker is left out if in this step it has sent as many LeaderAndIsr responses to
        the controller that waits for the response as the recorded step has LeaderAndIsr requests from this controller.
        """
        recorded = [(r["by"], r["to"], r["api"]) for r in self.step.get("requests", ())]
        found = []
        for broker, correlation_id in delayed_responses.blocked(self.world):
            sender, _ = self.world.network.in_flight.get(correlation_id, (None, None))
            done = [(r.fields["channel"], r.fields["api"]) for r in self.world.journal.since(self._began) if r.kind == "response"]
            if recorded.count((sender, broker, "LeaderAndIsr")) > done.count((f"{sender}>{broker}", "LeaderAndIsr")):
                found.append(("fetch_timeout", broker))
        return found


def writes_of(record: Record) -> int:
    """Return the number of a broker's successful writes in a journal record; 0 for a record without writes.

    ISR change notifications and blocks of producer ids do not count, because their place among the writes varies.
    """
    if record.id.broker is None or record.kind not in ("write", "change"):
        return 0
    fields = record.to_json().fields
    if record.kind == "change":
        return int(bool(fields["write"]))
    return 0 if fields["error"] else sum(op[0] != "check" and counts(op[1]) for op in fields["ops"])


def is_bid(world: World, action: Action) -> bool:
    """Return whether `action` performs a broker's transaction that creates `/controller`, to become controller.

    The transaction is the one for which the thread in `action`, ("advance", broker, thread), waits in `world`.
    """
    if action[0] != "advance":
        return False
    trip = world.processes[action[1]].driver.threads[action[2]].waits_for
    ops = trip.effect.ops if trip and isinstance(trip.effect, Transaction) else ()
    return any((op.kind, op.path) == ("create", CONTROLLER) for op in ops)


def creates_controller(record: Record) -> bool:
    """Return whether a journal record is a write that created `/controller`."""
    if record.kind != "write":
        return False
    fields = record.to_json().fields
    return fields["error"] is None and any((op[0], op[1]) == ("create", CONTROLLER) for op in fields["ops"])
