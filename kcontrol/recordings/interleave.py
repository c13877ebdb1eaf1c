"""Puts the writes, transitions and requests of a recorded step, three separate lists in the recording, into one order.

A step is one action, such as a kill, with all that follows it. Each list keeps its order; a transition stands with the write that
it made, and every other item as early as possible.

Where Kafka leaves an order open, the player of a recording repeats the recorded one (`recorded_step.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from kcontrol.core.znodes import BROKER_IDS, CONTROLLER_EPOCH, broker_path, topic_path
from kcontrol.recordings.recorded_step import is_awaited
from kcontrol.recordings.recording import UNNAMED, Step, state_key

Group = list[dict[str, Any]]
"""The writes of one transaction, or one single entry of the list of writes."""


class Item(NamedTuple):
    """One item of a recorded step, such as a ZooKeeper transaction or a request, as `interleave` yields it."""

    # "write" (a ZooKeeper transaction), "move" (a transition without a write), "request" (the arrival of a request), "sent" (the
    # sending of a request whose sender is killed before the arrival), or an action on a broker's process: "start", "stop" (a
    # kill), "exit" (any other end), "freeze" or "thaw".
    kind: str
    # The list of the transaction's writes, the transition, the request, or the broker's id.
    what: Any
    # Of a "write": the controller's transition that made the write; None if no transition made the write.
    move: dict[str, Any] | None = None


def as_list(value: Any) -> list[Any]:
    """Return a list unchanged, and any other value as a list of one."""
    return value if isinstance(value, list) else [value]


def grouped(writes: Iterable[dict[str, Any]]) -> list[Group]:
    """Return the writes in groups: the writes of one transaction are a group, any other write is a group of its own."""
    groups: list[Group] = []
    for write in writes:
        multi = write.get("multi")
        if multi and groups and groups[-1][0].get("multi") == multi:
            groups[-1].append(write)
        else:
            groups.append([write])
    return groups


# ---------------------------------------------------------------- which write belongs to which transition


class Decision(NamedTuple):
    """A controller's write of a state znode: its writer, partition and value, and whether the leader changes."""

    # The id of the broker that wrote; "tool" for an admin tool, "unnamed" for a session that has created no registration.
    by: Any
    partition: str
    value: dict[str, Any]
    # True also for the first value of the znode that the recording has.
    moves_leader: bool


class Leaderships:
    """The value of each partition's state znode in a recording, after the writes that were passed to `decided`."""

    def __init__(self) -> None:
        self.held: dict[str, dict[str, Any]] = {}

    def decided(self, write: dict[str, Any]) -> Decision | None:
        """Return a recorded write to a state znode as a controller's Decision, and store the znode's new value in `held`.

        Return None for a write to any other znode, for a deletion, and for an ISR change that a leader requested.
        """
        tp = state_key(write.get("path", ""))
        if tp is None:
            return None
        before, value = self.held.pop(tp, None), write.get("data")
        if write["op"] == "delete" or not isinstance(value, dict) or not {"leader", "leader_epoch", "isr"} <= value.keys():
            return None
        self.held[tp] = value
        if before is not None and is_isr_change(before, value):
            return None
        return Decision(write["by"], tp, value, before is None or before["leader"] != value["leader"])


def is_isr_change(before: dict[str, Any], value: dict[str, Any]) -> bool:
    """Return whether the contents `before` and `value` of a state znode differ in the ISR, but not in leader and leader epoch."""
    # The leader has requested such a change, even where the controller wrote it.
    return all(before[k] == value[k] for k in ("leader", "leader_epoch")) and before["isr"] != value["isr"]


def pair_writes_with_moves(moves: list[dict[str, Any]], groups: list[Group], seen: Leaderships) -> dict[int, int]:
    """Return {index of a transaction in `groups`: index in `moves` of the transition that made the transaction}.

    `moves` are the step's transitions. `seen`, the state znodes before the step, is updated by the writes.
    """
    found: dict[int, int] = {}
    start = 0
    for g, group in enumerate(groups):
        decisions = [d for write in group if (d := seen.decided(write)) is not None]
        # No transition writes several znodes in one transaction.
        if len(group) != 1 or not decisions:
            continue
        fits = (i for i in range(start, len(moves)) if _decides(moves[i], decisions[0]))
        if (i := next(fits, None)) is not None:
            found[g], start = i, i + 1
    return found


def _decides(move: dict[str, Any], decision: Decision) -> bool:
    """Return whether the transition `move` can have made the write `decision`, by the same controller for the same partition.

    It can if the partition becomes Online, or if a replica becomes Offline and the written ISR lacks it or has no other replica.
    """
    value = decision.value
    if move["by"] != decision.by or move.get("failed") or move["epoch"] != value.get("controller_epoch", move["epoch"]):
        return False
    # A partition becomes Online, with another leader if it was Online before.
    if move["machine"] == "partition":
        elects = move["from"] != "Online" or decision.moves_leader
        return bool(move["subject"] == decision.partition and move["to"] == "Online" and elects)
    partition, _, broker = move["subject"].rpartition("@")
    # A replica becomes Offline and leaves the ISR, or is its last member.
    is_out = int(broker) not in value["isr"] or value["isr"] == [int(broker)]  # the last member stays
    return bool(partition == decision.partition and move["to"] == "Offline" and is_out)


# ---------------------------------------------------------------- the items that must come before


class Gates:
    """Computes the earliest place of a state transition or a request among the ZooKeeper transactions of a recorded step.

    The place is the number of transactions before it: a request with a new leader, for example, comes after the write of this
    leader.
    """

    def __init__(self, step: Step, groups: list[Group], before: dict[str, dict[str, Any]]) -> None:
        # `before` has the contents of the state znodes before the step, by partition.
        self.groups, self.known = groups, {(tp, *_essence(v)) for tp, v in before.items()}
        actions = [step["do"], *step["do"].get("together", ())]
        # The numbers of transactions up to the step's trigger, such as a registration, and up to the first end of a registration.
        self.trigger = 0 if any("terminate" in do for do in actions) else self.after(_is_trigger)
        self.failure = self.after(lambda w: w["op"] == "close" or (w["op"] == "delete" and w["path"].startswith(BROKER_IDS)))
        self.epochs = {(w["by"], str(w["data"])): g for g, w in self._out() if w.get("path") == CONTROLLER_EPOCH and "data" in w}
        self.values: dict[Any, int] = {}
        for g, w in self._out():
            tp = state_key(w.get("path", ""))
            if tp and isinstance(w.get("data"), dict):
                self.values.setdefault((tp, *_essence(w["data"])), g)

    def _out(self) -> Iterator[tuple[int, dict[str, Any]]]:
        return ((g + 1, write) for g, group in enumerate(self.groups) for write in group)

    def after(self, fits: Callable[[dict[str, Any]], bool]) -> int:
        """The number, from 1, of the first transaction with a write that `fits` accepts; 0 if there is none."""
        return next((g for g, write in self._out() if fits(write)), 0)

    def registered(self, broker: int) -> int:
        return self.after(lambda w: w.get("path") == broker_path(broker) and w["op"] == "create")

    def of_move(self, move: dict[str, Any]) -> int:
        gates = [self.trigger, self.epochs.get((move["by"], str(move["epoch"])), 0)]
        if move["to"] == "Offline" and move["machine"] == "partition":
            gates.append(self.failure)
        if move["machine"] == "partition" and move["to"] == "New":
            gates.append(self._assigned(move["subject"], None))
        if move["machine"] == "replica" and not move.get("failed"):
            gates += self._of_replica(move)
        return max(gates)

    def _of_replica(self, move: dict[str, Any]) -> list[int]:
        """Return, per condition on a replica's transition `move`, how many of the step's transactions must come before `move`.

        A condition is such as "after the registration of the replica's broker"; [] means no condition.
        """
        # All conditions must hold, so the caller takes the largest number.
        tp, _, broker = move["subject"].rpartition("@")
        if move["to"] == "New":
            # New comes after the replica's assignment.
            return [self._assigned(tp, int(broker))]
        if move["to"] != "Online":
            return []
        # Online comes after the registration of the broker and, from New, after the first ISR with the replica.
        in_sync = self.after(lambda w: state_key(w.get("path", "")) == tp and int(broker) in (w.get("data") or {}).get("isr", ()))
        return [self.registered(int(broker)), in_sync if move["from"] == "New" else 0]

    def _assigned(self, tp: str, broker: int | None) -> int:
        topic, _, number = tp.rpartition("-")

        def assigns(write: dict[str, Any]) -> bool:
            held = write.get("data") if write.get("path") == topic_path(topic) else None
            replicas = held.get("partitions", {}).get(number) if isinstance(held, dict) else None
            return replicas is not None and (broker is None or broker in replicas)

        return self.after(assigns)

    def of_request(self, request: dict[str, Any]) -> int:
        gates = [self.trigger, self.epochs.get((request["by"], str(request["controller_epoch"])), 0)]
        gates.append(self.registered(request["to"]))
        sent = [(tp, *_essence(entry)) for tp, entry in request["partitions"].items() if "leader" in entry]
        return max(gates + [self.values.get(key, 0) for key in sent if key not in self.known])


def _is_trigger(write: dict[str, Any]) -> bool:
    by_tool = isinstance(write["by"], str)
    return by_tool or write["op"] == "close" or (write["op"] == "create" and write["path"].startswith(f"{BROKER_IDS}/"))


def _essence(value: dict[str, Any]) -> tuple[Any, ...]:
    return value.get("leader"), value.get("leader_epoch"), tuple(value.get("isr", ()))


def _stops(request: dict[str, Any], subject: str, *, delete: bool) -> bool:
    """Return whether a request is a StopReplica, with the deletion flag `delete`, for the replica `subject`, such as "t-0@1"."""
    partition, _, broker = subject.rpartition("@")
    entry = request["partitions"].get(partition)
    if request["api"] != "StopReplica" or str(request["to"]) != broker or entry is None:
        return False
    return bool(request.get("delete", entry.get("delete"))) is delete


# ---------------------------------------------------------------- actions on processes


def process_actions(step: Step, gates: Gates) -> list[tuple[int, Item]]:
    """Return (number, action) for each action of a step on a broker's process, such as a kill.

    The number says how many of the step's ZooKeeper transactions come before the action; `gates` knows these transactions.
    """
    found: list[tuple[int, Item]] = []
    now = 0
    for do in step["do"].get("together", [step["do"]]):
        for word, argument in do.items():
            if word == "await" and isinstance(argument, dict):
                now = max(now, *(gates.after(partial(is_awaited, how=how, path=path)) for how, path in argument.items()), 0)
            for broker in as_list(argument) if word in PROCESS_ACTIONS else ():
                now = _place(word, broker, gates, now, together="together" in step["do"])
                found.append((now, Item(PROCESS_ACTIONS[word], broker)))
    for broker in map(int, step.get("exited", ())):
        now = _place("terminate", broker, gates, now, together=False)
        found.append((now, Item("exit", broker)))
    return found


def started(step: Step) -> list[int]:
    """Return the ids of the brokers that the actions of a recorded step start."""
    return [broker for do in step["do"].get("together", [step["do"]]) for broker in as_list(do.get("start", []))]


PROCESS_ACTIONS = {"start": "start", "kill": "stop", "terminate": "exit", "pause": "freeze", "freeze": "freeze", "thaw": "thaw"}


def _place(word: str, broker: int, gates: Gates, now: int, *, together: bool) -> int:
    """Return how many ZooKeeper transactions of a recorded step come before the action `word`, such as "kill", on a broker.

    `gates` has these transactions. The result is at least `now`, the result for the previous action.
    """
    # A kill in a step without other actions (`together` is False) is at `now`.
    if word == "start":
        # The broker opens its session after its start.
        return max(now, gates.after(lambda w: w["by"] in (broker, UNNAMED) and w["op"] == "open") - 1)
    if word == "terminate" or (word == "kill" and together):
        # A controlled shutdown comes before the session closes, and so does a kill among several actions.
        unnamed = gates.after(lambda w: w["by"] == UNNAMED and w["op"] == ("close" if word == "terminate" else "open"))
        return max(now, (unnamed or gates.after(lambda w: w["by"] == broker and w["op"] == "close")) - 1)
    return now


# ---------------------------------------------------------------- one order


def interleave(step: Step, seen: Leaderships, later: Sequence[Step] = ()) -> Iterator[Item]:
    """Yield the writes, transitions, requests and process actions of a recorded step in one order.

    `seen`, the state znodes before the step, is updated. `later` steps may have late requests of brokers that this step
    kills.
    """
    # Each list keeps its order, a transition stands with its write, and every other item comes as early as `Gates` allows.
    groups = grouped(step["writes"])
    gates = Gates(step, groups, dict(seen.held))
    pending = process_actions(step, gates)
    moves, requests = step["transitions"], step["requests"]
    leaving = {item.what for _, item in pending if item.kind == "stop"}
    # A request that arrives after the end of its sender, in this step or a later one.
    yield from (Item("sent", request) for request in [*requests, *_late_requests(leaving, later)] if request["by"] in leaving)
    paired = pair_writes_with_moves(moves, groups, seen)
    merger = _Interleaver(moves, requests, gates, pending, set(paired.values()))
    for g, group in enumerate(groups):
        yield from merger.ready_items(g)
        if g in paired:
            yield from merger.moves_up_to(paired[g])
            yield Item("write", group, moves[paired[g]])
            merger.next_move = paired[g] + 1
        else:
            yield Item("write", group)
    yield from merger.ready_items(len(groups))
    yield from merger.moves_up_to(len(moves))
    yield from (Item("request", request) for request in requests[merger.next_request :])


def _late_requests(leaving: set[int], later: Sequence[Step]) -> Iterator[dict[str, Any]]:
    """Of brokers that an earlier step has killed, until a step starts them again."""
    ended = set(leaving)
    for step in later:
        ended -= set(started(step))
        yield from (request for request in step["requests"] if request["by"] in ended)


class _Interleaver:
    """The transitions and requests of a step that have not been yielded yet, each with a gate.

    A gate is the number of the step's ZooKeeper transactions that come before the transition or request.
    """

    def __init__(self, moves: Any, requests: Any, gates: Gates, pending: list[tuple[int, Item]], paired: set[int]) -> None:
        # `pending`: the process actions with their gates; `paired`: the indexes of the transitions that have a write.
        self.moves, self.requests, self.pending, self.paired = moves, requests, pending, paired
        thawed = {item.what: out for out, item in pending if item.kind == "thaw"}  # a frozen broker does nothing
        self.move_gates = [max(gates.of_move(move), thawed.get(move["by"], 0)) for move in moves]
        self.request_gates = [
            max(gates.of_request(request), thawed.get(request["by"], 0), thawed.get(request["to"], 0)) for request in requests
        ]
        self.next_move = self.next_request = 0

    def ready_items(self, out: int) -> Iterator[Item]:
        """Each item once; an item is a transition, a request or an action on a process."""
        # The end of a process comes after the transitions and requests that it may have made.
        yield from self._process_actions(out, leaving=False)
        yield from self._moves_and_requests(out)
        yield from self._process_actions(out, leaving=True)

    def _process_actions(self, out: int, *, leaving: bool) -> Iterator[Item]:
        """The actions that can come after `out` transactions; not `leaving`: up to the first "exit"."""
        # The end of a process comes last, so that the process can have made the transitions before.
        while self.pending and self.pending[0][0] <= out and (leaving or self.pending[0][1].kind != "exit"):
            yield self.pending.pop(0)[1]

    def _moves_and_requests(self, out: int) -> Iterator[Item]:
        found = True
        while found:
            found = False
            while self._is_move_ready(out):
                found = True
                yield Item("move", self.moves[self.next_move])
                self.next_move += 1
            if self._is_request_ready(out):
                found = True
                yield Item("request", self.requests[self.next_request])
                self.next_request += 1

    def _is_move_ready(self, out: int) -> bool:
        i = self.next_move
        # A transition with a write is yielded with this write.
        if i >= len(self.moves) or i in self.paired or self.move_gates[i] > out:
            return False
        move = self.moves[i]
        stops = (n for n, r in enumerate(self.requests) if _stops(r, move["subject"], delete=True))
        return move["to"] != "ReplicaDeletionSuccessful" or next(stops, -1) < self.next_request

    def _is_request_ready(self, out: int) -> bool:
        """Return whether the step's next request may be yielded after the first `out` ZooKeeper transactions of the step.

        Return False if a transaction or a transition that must come before is not yielded yet.
        """
        n = self.next_request
        if n >= len(self.requests) or self.request_gates[n] > out:
            return False
        # A StopReplica waits for the transition of its replica to ReplicaDeletionStarted.
        waiting = {(move["to"], move["subject"]) for move in self.moves[self.next_move :]}
        deleted = [subject for to, subject in waiting if to == "ReplicaDeletionStarted"]
        return not any(
            _stops(self.requests[n], subject, delete=True)
            or (("Offline", subject) in waiting and _stops(self.requests[n], subject, delete=False))
            for subject in deleted
        )

    def moves_up_to(self, end: int) -> Iterator[Item]:
        yield from (Item("move", move) for move in self.moves[self.next_move : end])
        self.next_move = max(self.next_move, end)
