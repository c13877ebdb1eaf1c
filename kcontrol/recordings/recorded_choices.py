"""Makes a run repeat the choices of a recorded step that depend on timing: the next controller, fetch timeouts.

A step has several elections if a controller's failover fails: this controller resigns, and the next election begins. The
brokers that won the recorded elections win those of the run, in the recorded order.
"""

from collections import Counter, deque
from collections.abc import Sequence

from kcontrol.cluster import delayed_responses
from kcontrol.cluster.world import Action, World
from kcontrol.core.effects import Transaction
from kcontrol.core.errors import UserError
from kcontrol.core.znodes import BROKER_IDS, CONTROLLER
from kcontrol.journal.journal import Record
from kcontrol.recordings.recorded_step import RecordedStep, counts

LOCAL = ("advance", "begin", "deliver_notification", "renew", "reconnect")
PATIENCE = 20
"""The number of handlers that may fail in a step in addition to those of its recorded elections."""


class RecordedChoices:
    """The choices of one recorded step (an action and what follows it) that depend on timing, such as a second election.

    The player repeats them.
    """

    def __init__(self, step: RecordedStep, world: World) -> None:
        self.step, self.world, self._began = step.step, world, len(world.journal)
        self.repeats = len(step.winners) > 1
        created: list[tuple[int, str]] = [(w["by"], w["path"]) for w in step.writes if w["op"] == "create"]
        # The recorded creations (broker, path) of `/controller` and of registrations that are still to be repeated; empty
        # without a second election.
        self.claims = deque(c for c in created if self.repeats and (c[1] == CONTROLLER or c[1].startswith(f"{BROKER_IDS}/")))
        self._acting: int | None = None
        self._failed, self._expected = 0, PATIENCE + len(self.claims)
        requests = step.step.get("requests", ()) if self.repeats else ()
        self._unsent = Counter((r["by"], r["to"], r["controller_epoch"]) for r in requests)

    @property
    def _resigns_again(self) -> bool:
        """Whether the present controller must still resign in this step, as it did in the recording.

        True if `/controller` exists and the recorded step has a controller election that the run has not repeated yet.
        """
        return self.world.exist(CONTROLLER) == [True] and any(path == CONTROLLER for _, path in self.claims)

    @property
    def next_controller(self) -> int | None:
        """The broker whose recorded creation, of `/controller` or of its registration, the run must repeat next.

        If no creation is left, or the present controller must resign first, the broker of the last repeated creation; None
        before the first.
        """
        return self.claims[0][0] if self.claims and not self._resigns_again else self._acting

    def watch(self, records: Sequence[Record]) -> None:
        """Remove from `claims` the recorded creations of `/controller` and of registrations that the run has just repeated.

        `records` are the new journal records. Raises UserError if too many event handlers have failed in this step.
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
        """Return the action of `routine` to perform next, so that elections have the order of the recording.

        `routine` are the possible actions that the cluster performs by itself. Return None if the step has at most one election,
        since any action is then right.
        """
        if not self.repeats:
            return None
        winner = self.next_controller
        later = {by for by, path in self.claims if path != CONTROLLER} - {winner}
        handling = [a for a in routine if a[0] in LOCAL and a[2:] == ("requests",)]
        due = [a for a in routine if a[0] == "deliver_request" and self._unsent[self._key(a)] > 0]
        local = [a for a in routine if a[0] in LOCAL and a[1] not in later]
        # While a controller that will resign exists, the actions of the other brokers come first.
        others = [a for a in local if a[1] != winner] if self._resigns_again else []
        mine = [a for a in local if a[1] == winner]
        action = [*handling, *due, *others, *mine, *local, *(a for a in routine if a[0] != "deliver_request"), *routine][0]
        # A controller sends as many requests as in the recording before it resigns.
        if action in due:
            self._unsent[self._key(action)] -= 1
        return action

    def _key(self, action: Action) -> tuple[int, int, int]:
        sender, receiver = action[1:]
        return sender, receiver, self.world.network.channels[sender, receiver][0].requests.controller_epoch

    def fetch_timeouts(self) -> list[Action]:
        """Return ("time_out_fetch", broker) for each broker whose delayed LeaderAndIsr response was sent in the recorded step.

        This action ends the broker's fetch from a frozen leader; then the broker sends the response.
        """
        recorded = [(r["by"], r["to"], r["api"]) for r in self.step.get("requests", ())]
        found = []
        for broker, correlation_id in delayed_responses.blocked(self.world):
            sender, _ = self.world.network.in_flight.get(correlation_id, (None, None))
            done = [(r.fields["channel"], r.fields["api"]) for r in self.world.journal.since(self._began) if r.kind == "response"]
            # The recorded step has more such responses of the broker to this controller than the step of the run so far.
            if recorded.count((sender, broker, "LeaderAndIsr")) > done.count((f"{sender}>{broker}", "LeaderAndIsr")):
                found.append(("time_out_fetch", broker))
        return found


def writes_of(record: Record) -> int:
    """Return the number of a broker's successful writes in a journal record; 0 for a record without writes."""
    if record.id.broker is None or record.kind not in ("write", "change"):
        return 0
    fields = record.to_json().fields
    if record.kind == "change":
        return int(bool(fields["write"]))
    return 0 if fields["error"] else sum(op[0] != "check" and counts(op[1]) for op in fields["ops"])


def is_bid(world: World, action: Action) -> bool:
    """Whether a broker creates `/controller` in the round trip for which its thread waits."""
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
