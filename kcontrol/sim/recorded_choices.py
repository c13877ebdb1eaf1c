"""Choices of a recording that depend on the state of the world: failovers that repeat, and fetches that time out.

Failovers that fail follow each other until something else ends them: how many there are, which broker wins each, and how much a
controller has sent when it resigns is a matter of time. The player goes through as many as were recorded.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from kcontrol.errors import UserError
from kcontrol.runtime.journal import Record
from kcontrol.sim import held_answers_1_0
from kcontrol.sim.recorded_step import RecordedStep, counts
from kcontrol.sim.world import Action, World
from kcontrol.znodes import BROKER_IDS, CONTROLLER

LOCAL = ("advance", "begin", "deliver", "renew", "reconnect")
PATIENCE = 20
"""How many handlers may fail in a step beside those of its recorded elections."""


class RecordedChoices:
    """The choices of one step that are still to come.

    `claims` are the creations of `/controller` and of registrations, in their order, where `/controller` changes hands more than
    once within the step.
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
        """Whether a broker is controller now and another election follows in the recorded step."""
        return self.world.have(CONTROLLER) == [True] and any(path == CONTROLLER for _, path in self.claims)

    @property
    def winner(self) -> int | None:
        """The broker that acts before the others: the controller while it tries to fail over, and then the next one."""
        return self.claims[0][0] if self.claims and not self._resigns_again else self._acting

    def watch(self, records: Sequence[Record]) -> None:
        """Count handlers that have failed, and take a claim that has been made off the list.

        Raises UserError where more handlers fail than the recorded elections and a few others explain.
        """
        for record in records:
            self._failed += record.kind == "fail"
            ops = record.fields["ops"] if self.claims and record.kind == "write" and record.fields["error"] is None else ()
            if any(op[0] == "create" and self.claims[0] == (record.id.node, op[1]) for op in ops):
                self._acting = self.claims.popleft()[0]
        if self._failed > self._expected:
            raise UserError(f"The step {self.step['do']} never ends: the same goes wrong again and again.")

    def next(self, routine: Sequence[Action]) -> Action | None:
        """Return the next action where failovers repeat, None elsewhere.

        When a controller resigns, it has sent as many requests as in the recording. The other brokers hear at once who is
        controller; after a resignation the next winner is the fastest.
        """
        if not self.repeats:
            return None
        winner = self.winner
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
        """Return the ends of fetches from frozen leaders where the recorded step has more handled LeaderAndIsr than ours."""
        told = [(r["by"], r["to"], r["api"]) for r in self.step.get("requests", ())]
        found = []
        for broker, correlation_id in held_answers_1_0.waiting(self.world):
            sender, _ = self.world.network.in_flight.get(correlation_id, (None, None))
            done = [(r.fields["channel"], r.fields["api"]) for r in self.world.journal.since(self._began) if r.kind == "answered"]
            if told.count((sender, broker, "LeaderAndIsr")) > done.count((f"{sender}>{broker}", "LeaderAndIsr")):
                found.append(("fetch_timeout", broker))
        return found


def writes_of(record: Record) -> int:
    """Return how many writes a record of a broker has that count for how far the cluster has come."""
    if record.id.broker is None or record.kind not in ("write", "change"):
        return 0
    fields = record.plain().fields
    if record.kind == "change":
        return int(bool(fields["write"]))
    return 0 if fields["error"] else sum(op[0] != "check" and counts(op[1]) for op in fields["ops"])


def wins(record: Record) -> bool:
    """Return whether a record is a write that created `/controller`."""
    if record.kind != "write":
        return False
    fields = record.plain().fields
    return fields["error"] is None and any((op[0], op[1]) == ("create", CONTROLLER) for op in fields["ops"])
