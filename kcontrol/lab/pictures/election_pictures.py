"""Draws pictures of the controller's election, from a run's journal and from the tables in `controller/event_thread.py`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kcontrol.controller import event_thread
from kcontrol.core import events
from kcontrol.core.znodes import CONTROLLER
from kcontrol.journal.journal import Record, RecordId
from kcontrol.lab.pictures import watch_pictures
from kcontrol.lab.tables import watch_handlers
from kcontrol.views import watch_counts
from kcontrol.views.diagrams import Arrow, Box, Diagram, graph
from kcontrol.views.folded_state import controller

State = dict[str, Any]

# ---------------------------------------------------------------- brokers round /controller


def ring(records: Sequence[Record], state: State) -> Diagram:
    """Draw the znode `/controller`, the broker whose session owns it, and the brokers that watch it."""
    named, owner = controller(state), state["znodes"].get(CONTROLLER, (None, None, None))[2]
    watchers = {watch.broker for watch in watch_counts.open_watches(records) if watch.path == CONTROLLER}
    what = f"names broker {named[0]}, epoch {named[1]}" if named else "is missing"
    boxes = [Box(CONTROLLER, (CONTROLLER, what), "full" if named else "")]
    arrows = []
    for broker in sorted({*records[0].fields["brokers"], *map(int, state["nodes"])}):
        alive, key = str(broker) in state["nodes"], f"broker {broker}"
        lines = (key, "controller") if owner == broker else (key,) if alive else (key, "is down")
        boxes.append(Box(key, lines, "current" if owner == broker else ""))
        roles = ["owns"] * (owner == broker) + ["watches"] * (broker in watchers)
        arrows += [Arrow(key, CONTROLLER, " and ".join(roles))] if roles else []
    return graph("ring", boxes, arrows)


# ---------------------------------------------------------------- where to read

# fmt: off
STRUCTURE: tuple[tuple[str, str, str], ...] = (
    # part of KafkaController.scala   what it holds                           where it is here
    ("election triggers",             "causes of leader elections",           "controller/requested_elections.py"),
    ("object KafkaController",        "constants, types of callbacks",        "broker/broker_configs.py, core/events.py"),
    ("class KafkaController",         "its context and all its handlers",      "controller/"),
    ("ZooKeeper handlers",            "{watched} notifications, {paths} paths", "controller/event_thread.py: WATCHES"),
    ("ControllerEvent", "{events} events", "core/events.py, controller/event_thread.py: EVENTS"),
)
# fmt: on


def structure(records: Sequence[Record], state: State) -> Diagram:
    """Draw the parts of KafkaController.scala, such as its class and its events, each with its module in kcontrol.

    `records` and `state` are not used: the picture is equal for every run.
    """
    counts = {
        "watched": len(event_thread.WATCHES),
        "paths": len({path for _, path, _ in event_thread.WATCHES}),
        "events": len(event_thread.EVENTS),
    }
    boxes = [Box("file", ("KafkaController.scala", "Kafka 2.8"), "full")]
    arrows = []
    for part, holds, ours in STRUCTURE:
        boxes.append(Box(part, (part, holds.format(**counts), f"here: {ours}")))
        arrows.append(Arrow("file", part))
    return graph("structure", boxes, arrows)


# ---------------------------------------------------------------- the map of listeners


def listeners(records: Sequence[Record], state: State) -> Diagram:
    """Draw each path that brokers of 1.1 and later watch, the event of each kind of change, and its handler.

    `records` and `state` are not used: the picture is equal for every run.
    """
    watched_by_all = {path for path, _, who in watch_counts.ONE_CONTROLLER if who == watch_counts.ALL}
    paths, handled, arrows = dict[str, Box](), dict[str, Box](), list[Arrow]()
    for type_, pattern, event in event_thread.WATCHES:
        path = watch_handlers.readable(pattern)
        # Paths that all brokers watch are highlighted.
        paths.setdefault(path, Box(path, (path,), "full" if path in watched_by_all else ""))
        handled.setdefault(event.__name__, Box(event.__name__, (event.__name__, _handler_name(event))))
        arrows.append(Arrow(path, event.__name__, watch_handlers.SHORT[type_]))
    # Graphviz puts the first of two unconnected parts at the bottom.
    return graph("listeners", [*reversed(paths.values()), *reversed(handled.values())], reversed(arrows))


def _handler_name(event: Any) -> str:
    """Return the name of the function that handles an event, with "()"; "no handler here yet" for an event without one."""
    row = event_thread.DESIGN.handlers.get(event)
    return f"{row.handler.__qualname__.partition('.')[0]}()" if row else "no handler here yet"


# ---------------------------------------------------------------- what triggers an election

BEGINNINGS: tuple[tuple[str, type[events.Event]], ...] = (
    ("a broker starts", events.Startup),
    ("a session has expired, another one is open", events.RegisterBrokerAndReelect),
)
CHANGES = {"NodeCreated": "is created", "NodeDeleted": "is deleted", "NodeDataChanged": "has other data"}
PARTS = {"maybe_resign": "maybeResign()", "elect": "elect()"}


def causes() -> Iterator[tuple[str, type[events.Event], tuple[str, ...]]]:
    """(cause, its event, those of "maybe_resign" and "elect" that the handler calls)."""
    changes = [(f"{CONTROLLER} {CHANGES[type_]}", event) for type_, path, event in event_thread.WATCHES if path == CONTROLLER]
    found: list[tuple[str, Any]] = [*BEGINNINGS, *changes]
    for cause, event in found:
        called = event_thread.DESIGN.handlers[event].handler.__code__.co_names
        yield cause, event, tuple(name for name in called if name in PARTS)


def triggers(records: Sequence[Record], state: State) -> Diagram:
    """Equal for every run."""
    ends = {True: Box("elect", ("an election",), "current"), False: Box("no election", ("no election",))}
    boxes, arrows = dict[str, Box](), list[Arrow]()
    for cause, event, called in causes():
        name, end = event.__name__, ends["elect" in called]
        boxes[cause] = Box(cause, (cause,))
        boxes[name] = Box(name, (name, ", then ".join(PARTS[part] for part in called)))
        arrows += [Arrow(cause, name), *([] if Arrow(name, end.key) in arrows else [Arrow(name, end.key)])]
    return graph("triggers", [*boxes.values(), *ends.values()], arrows)


# ---------------------------------------------------------------- the flow of elect()

READ, EPOCH, WRITE, WHOSE = "read", "epoch", "write", "whose"
RULED, FAILOVER, RESIGN, MOVE, RULES = "ruled", "failover", "resign", "move", "rules"

# fmt: off
STEPS: Mapping[str, tuple[str, ...]] = {
    READ:     ("read /controller",),
    RULED:    ("a controller exists: stop",),
    EPOCH:    ("read /controller_epoch: c, at version v", "(create it with 0 if it is missing)"),
    WRITE:    ("one transaction: create /controller, ephemeral,", "and set /controller_epoch to c + 1 if it is still at v"),
    WHOSE:    ("read both again: this broker, with c + 1?",),
    FAILOVER: ("onControllerFailover()",),
    RESIGN:   ("maybeResign()",),
    MOVE:     ("triggerControllerMove(): resign, delete /controller",),
    RULES:    ("controller",),
}

ELECT: tuple[tuple[str, str, str], ...] = (
    # step      what comes of it                  next step
    (READ,      "names a broker",                 RULED),
    (READ,      "is missing",                     EPOCH),
    (EPOCH,     "",                               WRITE),
    (WRITE,     "done",                           FAILOVER),
    (WRITE,     "NodeExists or BadVersion",       WHOSE),
    (WRITE,     "any other error",                MOVE),
    (WHOSE,     "yes: sent twice, done once",     FAILOVER),
    (WHOSE,     "no",                             RESIGN),
    (FAILOVER,  "done",                           RULES),
    (FAILOVER,  "ControllerMovedException",       RESIGN),
    (FAILOVER,  "any other error",                MOVE),
)
# fmt: on


def flow(records: Sequence[Record], state: State) -> Diagram:
    """Draw the steps of `elect`, with the number of times that each arrow was taken in this run; steps taken are highlighted.

    `state` is not used. Source: KafkaController.elect and KafkaZkClient.registerControllerAndIncrementControllerEpoch (2.8).
    """
    taken = ways(records)
    reached = {READ, *(target for (_, target), count in taken.items() if count)} if taken else set()
    boxes = [Box(key, lines, "current" if key == RULES else "full" if key in reached else "") for key, lines in STEPS.items()]
    return graph("elect", boxes, (Arrow(s, t, _counted(found, taken[s, t])) for s, found, t in ELECT), rankdir="TB")


def _counted(found: str, times: int) -> str:
    return " ".join(filter(None, [found, f"({times} times)" if times > 1 else "(once)" if times else ""]))


def ways(records: Iterable[Record]) -> Counter[tuple[str, str]]:
    """Return how often controller elections went from one step of Kafka's `elect` to the next: counts by pair.

    Elections that have not ended are left out. A pair has keys of STEPS, such as "read" for reading `/controller`.
    """
    campaigns: dict[RecordId, list[Record]] = {}
    ended: dict[RecordId, None] = {}
    for record in records:
        if record.kind == "begin" and record.fields["event"] in CAMPAIGNS:
            campaigns[record.id] = []
        elif record.cause in campaigns:
            campaigns[record.cause].append(record)
            ended.update({record.cause: None} if record.kind in ("end", "handler_error") else {})
    return Counter(arrow for id in ended for arrow in _way(campaigns[id]))


CAMPAIGNS = {event.__name__ for _, event, called in causes() if "elect" in called}


def _way(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Return the steps of `elect` in one election as pairs of successive steps, such as ("read", "epoch")."""
    writes = (r for r in records if r.kind == "write")
    tried = [r for r in writes if any(list(op[:2]) == ["create", CONTROLLER] for op in r.to_json().fields["ops"])]
    if not tried:
        return [(READ, RULED)]
    way, error = [(READ, EPOCH), (EPOCH, WRITE)], tried[-1].fields["error"]
    failed = any(r.kind == "handler_error" for r in records)
    if error is None:
        # After an error in onControllerFailover the broker resigns and deletes `/controller` (MOVE, triggerControllerMove).
        return [*way, (WRITE, FAILOVER), (FAILOVER, MOVE if failed else RULES)]
    if error not in ("NodeExists", "BadVersion"):
        return [*way, (WRITE, MOVE)]
    after = records[records.index(tried[-1]) :]
    won = any(r.kind == "update" and r.fields["field"] == "controller_epoch" and r.fields["put"] for r in after)
    return [*way, (WRITE, WHOSE), *([(WHOSE, FAILOVER), (FAILOVER, MOVE if failed else RULES)] if won else [(WHOSE, RESIGN)])]


PICTURES: Mapping[str, Callable[[Sequence[Record], State], Diagram]] = {
    "controller": ring,
    "source": structure,
    "listeners": listeners,
    "triggers": triggers,
    "elect": flow,
    "watch_events": watch_pictures.watch_events,
    "threads": watch_pictures.threads,
}
"""The pictures by their names in `lab.diagram`."""
