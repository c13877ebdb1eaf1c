"""One order for what a recording keeps apart: within a step it has writes, transitions and requests in three lists.

Each list keeps its order. Between them a transition that belongs to a write is one with it; other transitions, and requests,
come as early as the recording allows: after the write that made their sender controller, after what set the step off, a request
after the writes that it tells of. What really came first is not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from kcontrol.pipeline.recording import UNNAMED, Step, state_key
from kcontrol.znodes import BROKER_IDS, CONTROLLER_EPOCH, broker_path, topic_path

Group = list[dict[str, Any]]
"""The writes of one transaction, or one other entry of the list of writes."""


class Item(NamedTuple):
    """What comes next: `kind` is "write", "move", "request", "sent" for one that arrives later, or what is done to a broker.

    `what` is a group of writes, an entry of the recording, or a broker's id.
    """

    kind: str
    what: Any
    move: dict[str, Any] | None = None


def as_list(value: Any) -> list[Any]:
    """The value, or the values that a step of a scenario names."""
    return value if isinstance(value, list) else [value]


def grouped(writes: Iterable[dict[str, Any]]) -> list[Group]:
    """The writes, those of one transaction together."""
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
    """What was written to a state znode by whom, and whether it names another leader than before."""

    by: Any
    partition: str
    value: dict[str, Any]
    moves_leader: bool


class Leaderships:
    """What the state znodes hold as the writes go by; tells a decision of a controller from a leader's change of its ISR."""

    def __init__(self) -> None:
        self.held: dict[str, dict[str, Any]] = {}

    def decided(self, write: dict[str, Any]) -> Decision | None:
        """What a write decides about a partition; None for a change of ISR alone, and for all other writes."""
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
    """Whether nothing but the ISR differs: a leader's own change, whoever wrote it."""
    return all(before[k] == value[k] for k in ("leader", "leader_epoch")) and before["isr"] != value["isr"]


def pairs(moves: list[dict[str, Any]], groups: list[Group], seen: Leaderships) -> dict[int, int]:
    """For each group that wrote what a transition decided, the number of that transition; both lists keep their order."""
    found: dict[int, int] = {}
    start = 0
    for g, group in enumerate(groups):
        decisions = [d for write in group if (d := seen.decided(write)) is not None]
        if len(group) != 1 or not decisions:
            continue
        fits = (i for i in range(start, len(moves)) if _decides(moves[i], decisions[0]))
        if (i := next(fits, None)) is not None:
            found[g], start = i, i + 1
    return found


def _decides(move: dict[str, Any], decision: Decision) -> bool:
    """Whether a transition may be the one that a value was written for."""
    value = decision.value
    if move["by"] != decision.by or move.get("failed") or move["epoch"] != value.get("controller_epoch", move["epoch"]):
        return False
    if move["machine"] == "partition":
        elects = move["from"] != "Online" or decision.moves_leader
        return bool(move["subject"] == decision.partition and move["to"] == "Online" and elects)
    partition, _, broker = move["subject"].rpartition("@")
    is_out = int(broker) not in value["isr"] or value["isr"] == [int(broker)]  # the last member stays
    return bool(partition == decision.partition and move["to"] == "Offline" and is_out)


# ---------------------------------------------------------------- what has to come before


class Gates:
    """How many groups must be out before something of a step may come."""

    def __init__(self, step: Step, groups: list[Group], before: dict[str, dict[str, Any]]) -> None:
        self.groups, self.stands = groups, {(tp, *_essence(v)) for tp, v in before.items()}
        does = [step["do"], *step["do"].get("together", ())]
        self.trigger = 0 if any("term" in do for do in does) else self.after(_sets_off)
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
        """The number of groups up to the first write that fits; none of them if there is none."""
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
        """A new replica comes after it was assigned, and is Online once it is registered and, if it gets there, in sync."""
        tp, _, broker = move["subject"].rpartition("@")
        if move["to"] == "New":
            return [self._assigned(tp, int(broker))]
        if move["to"] != "Online":
            return []
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
        told = [(tp, *_essence(entry)) for tp, entry in request["partitions"].items() if "leader" in entry]
        return max(gates + [self.values.get(key, 0) for key in told if key not in self.stands])


def _sets_off(write: dict[str, Any]) -> bool:
    by_hand = isinstance(write["by"], str)
    return by_hand or write["op"] == "close" or (write["op"] == "create" and write["path"].startswith(f"{BROKER_IDS}/"))


def _essence(value: dict[str, Any]) -> tuple[Any, ...]:
    return value.get("leader"), value.get("leader_epoch"), tuple(value.get("isr", ()))


def _stops(request: dict[str, Any], subject: str, *, delete: bool) -> bool:
    """Whether a request asks the broker of this replica to stop it, and to delete it or not."""
    partition, _, broker = subject.rpartition("@")
    entry = request["partitions"].get(partition)
    if request["api"] != "StopReplica" or str(request["to"]) != broker or entry is None:
        return False
    return bool(request.get("delete", entry.get("delete"))) is delete


# ---------------------------------------------------------------- what is done to brokers


def deeds(step: Step, gates: Gates) -> list[tuple[int, Item]]:
    """What the step does to brokers, each with how many groups come before it."""
    found: list[tuple[int, Item]] = []
    now = 0
    for do in step["do"].get("together", [step["do"]]):
        for word, argument in do.items():
            if word == "await" and isinstance(argument, dict):
                now = max(now, *(gates.after(_awaited(*wanted)) for wanted in argument.items()), 0)
            for broker in as_list(argument) if word in DEEDS else ():
                now = _place(word, broker, gates, now, together="together" in step["do"])
                found.append((now, Item(DEEDS[word], broker)))
    for broker in map(int, step.get("exited", ())):
        now = _place("term", broker, gates, now, together=False)
        found.append((now, Item("exit", broker)))
    return found


def started(step: Step) -> list[int]:
    """Return the brokers that a step starts."""
    return [broker for do in step["do"].get("together", [step["do"]]) for broker in as_list(do.get("start", []))]


DEEDS = {"start": "start", "kill": "stop", "term": "exit", "pause": "freeze", "freeze": "freeze", "resume": "thaw"}


def _awaited(how: str, path: Any) -> Callable[[dict[str, Any]], bool]:
    if how == "gone":
        return lambda w: path in w.get("deleted", ()) or (w["op"] == "delete" and w["path"] == path)
    return lambda w: w["op"] == "create" and w["path"] == path


def _place(word: str, broker: int, gates: Gates, now: int, *, together: bool) -> int:
    """A broker starts before it opens its session, and exits before that is closed; the rest comes where the step says it."""
    if word == "start":
        return max(now, gates.after(lambda w: w["by"] in (broker, UNNAMED) and w["op"] == "open") - 1)
    if word == "term" or (word == "kill" and together):
        nameless = gates.after(lambda w: w["by"] == UNNAMED and w["op"] == ("close" if word == "term" else "open"))
        return max(now, (nameless or gates.after(lambda w: w["by"] == broker and w["op"] == "close")) - 1)
    return now


# ---------------------------------------------------------------- one order


def weave(step: Step, seen: Leaderships, later: Sequence[Step] = ()) -> Iterator[Item]:
    """Everything that a step has, each entry once. `seen` is what the steps before have left, and is kept up to date.

    A request that arrives after its sender has died, in this step or `later`, was sent before that.
    """
    groups = grouped(step["writes"])
    gates = Gates(step, groups, dict(seen.held))
    doing = deeds(step, gates)
    moves, requests = step["transitions"], step["requests"]
    leaving = {item.what for _, item in doing if item.kind == "stop"}
    yield from (Item("sent", request) for request in [*requests, *_of_the_dead(leaving, later)] if request["by"] in leaving)
    paired = pairs(moves, groups, seen)
    loom = _Loom(moves, requests, gates, doing, set(paired.values()))
    for g, group in enumerate(groups):
        yield from loom.what_may_come(g)
        if g in paired:
            yield from loom.moves_up_to(paired[g])
            yield Item("write", group, moves[paired[g]])
            loom.next_move = paired[g] + 1
        else:
            yield Item("write", group)
    yield from loom.what_may_come(len(groups))
    yield from loom.moves_up_to(len(moves))
    yield from (Item("request", request) for request in requests[loom.next_request :])


def _of_the_dead(leaving: set[int], later: Sequence[Step]) -> Iterator[dict[str, Any]]:
    """What arrives in later steps from brokers that leave now, as long as they have not started again."""
    gone = set(leaving)
    for step in later:
        for do in step["do"].get("together", [step["do"]]):
            gone -= set(as_list(do.get("start", [])))
        yield from (request for request in step["requests"] if request["by"] in gone)


class _Loom:
    """Two lists that wait for the third."""

    def __init__(self, moves: Any, requests: Any, gates: Gates, doing: list[tuple[int, Item]], paired: set[int]) -> None:
        self.moves, self.requests, self.doing, self.paired = moves, requests, doing, paired
        thawed = {item.what: out for out, item in doing if item.kind == "thaw"}  # who is frozen does nothing
        self.move_gates = [max(gates.of_move(move), thawed.get(move["by"], 0)) for move in moves]
        self.request_gates = [
            max(gates.of_request(request), thawed.get(request["by"], 0), thawed.get(request["to"], 0)) for request in requests
        ]
        self.next_move = self.next_request = 0

    def what_may_come(self, out: int) -> Iterator[Item]:
        """What may come after so many groups: deeds, then transitions, then requests, until nothing more may."""
        yield from self._deeds(out, leaving=False)
        yield from self._news(out)
        yield from self._deeds(out, leaving=True)

    def _deeds(self, out: int, *, leaving: bool) -> Iterator[Item]:
        """A broker that says goodbye does so after all that others could still do because of that."""
        while self.doing and self.doing[0][0] <= out and (leaving or self.doing[0][1].kind != "exit"):
            yield self.doing.pop(0)[1]

    def _news(self, out: int) -> Iterator[Item]:
        came = True
        while came:
            came = False
            while self._move_may_come(out):
                came = True
                yield Item("move", self.moves[self.next_move])
                self.next_move += 1
            if self._request_may_come(out):
                came = True
                yield Item("request", self.requests[self.next_request])
                self.next_request += 1

    def _move_may_come(self, out: int) -> bool:
        i = self.next_move
        if i >= len(self.moves) or i in self.paired or self.move_gates[i] > out:
            return False
        move = self.moves[i]
        asked = (n for n, r in enumerate(self.requests) if _stops(r, move["subject"], delete=True))
        return move["to"] != "ReplicaDeletionSuccessful" or next(asked, -1) < self.next_request

    def _request_may_come(self, out: int) -> bool:
        """A replica that is to be deleted moves before it is told to stop."""
        n = self.next_request
        if n >= len(self.requests) or self.request_gates[n] > out:
            return False
        waiting = {(move["to"], move["subject"]) for move in self.moves[self.next_move :]}
        told = [subject for to, subject in waiting if to == "ReplicaDeletionStarted"]
        return not any(
            _stops(self.requests[n], subject, delete=True)
            or (("Offline", subject) in waiting and _stops(self.requests[n], subject, delete=False))
            for subject in told
        )

    def moves_up_to(self, end: int) -> Iterator[Item]:
        yield from (Item("move", move) for move in self.moves[self.next_move : end])
        self.next_move = max(self.next_move, end)
