"""Pictures of the election of the controller, drawn from the tables by which it works and from a run's journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kcontrol import events
from kcontrol.controller import handlers
from kcontrol.lab import hearing, hearing_pictures
from kcontrol.runtime.journal import Record, RecordId
from kcontrol.views import watching
from kcontrol.views.diagrams import Diagram
from kcontrol.views.graphs import Arrow, Box, graph
from kcontrol.views.scene import controller
from kcontrol.znodes import CONTROLLER

State = dict[str, Any]

# ---------------------------------------------------------------- brokers round /controller


def ring(records: Sequence[Record], state: State) -> Diagram:
    """The znode `/controller`, whose session it belongs to, and who watches it, as the journal has it."""
    named, owner = controller(state), state["znodes"].get(CONTROLLER, (None, None, None))[2]
    watchers = {watch.broker for watch in watching.standing(records) if watch.path == CONTROLLER}
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
    # part of KafkaController.scala   what it holds                                   where it is here
    ("election triggers",             "who asks for an election of leaders",          "controller/elections_on_request.py"),
    ("object KafkaController",        "constants, types of callbacks",                "config.py, events.py"),
    ("class KafkaController",         "its context and all its handlers",              "controller/"),
    ("ZooKeeper handlers",            "{watched} kinds of news, {paths} paths",       "controller/handlers.py: WATCH_EVENTS"),
    ("ControllerEvent",               "{events} events",                              "events.py, controller/handlers.py: ROWS"),
)
# fmt: on


def structure(records: Sequence[Record], state: State) -> Diagram:
    """The five parts of KafkaController.scala, what each holds, counted from our tables, and where the same is here."""
    counts = {
        "watched": len(handlers.WATCH_EVENTS),
        "paths": len({path for _, path, _ in handlers.WATCH_EVENTS}),
        "events": len(handlers.ROWS),
    }
    boxes = [Box("file", ("KafkaController.scala", "Kafka 2.8"), "full")]
    arrows = []
    for part, holds, ours in STRUCTURE:
        boxes.append(Box(part, (part, holds.format(**counts), f"here: {ours}")))
        arrows.append(Arrow("file", part))
    return graph("structure", boxes, arrows)


# ---------------------------------------------------------------- the map of listeners


def listeners(records: Sequence[Record], state: State) -> Diagram:
    """Every path that is listened to, what becomes of each kind of news, and who handles it; lit: what every broker watches."""
    everybody = {path for path, _, who in watching.ONE_CONTROLLER if who == watching.ALL}
    paths, happened, known = dict[str, Box](), dict[str, Box](), list[Arrow]()
    for said, pattern, event in handlers.WATCH_EVENTS:
        path = hearing.readable(pattern)
        paths.setdefault(path, Box(path, (path,), "full" if path in everybody else ""))
        handled = _handled(event)
        happened.setdefault(event.__name__, Box(event.__name__, (event.__name__, handled)))
        known.append(Arrow(path, event.__name__, hearing.SHORT[said]))
    # Graphviz puts what comes first at the bottom, where parts of a picture are not connected.
    return graph("listeners", [*reversed(paths.values()), *reversed(happened.values())], reversed(known))


def _handled(event: Any) -> str:
    """The name of the function that handles an event."""
    row = handlers.HANDLERS.get(event)
    return f"{row.handler.__qualname__.partition('.')[0]}()" if row else "no handler here yet"


# ---------------------------------------------------------------- what triggers an election

BEGINNINGS: tuple[tuple[str, type[events.Event]], ...] = (
    ("a broker starts", events.Startup),
    ("a session has expired, another one is open", events.RegisterBrokerAndReelect),
)
NEWS = {"NodeCreated": "is created", "NodeDeleted": "is deleted", "NodeDataChanged": "has other data"}
PARTS = {"maybe_resign": "maybeResign()", "elect": "elect()"}


def causes() -> Iterator[tuple[str, type[events.Event], tuple[str, ...]]]:
    """What happens, the event it becomes, and which of `maybe_resign` and `elect` its handler calls, in this order."""
    news = [(f"{CONTROLLER} {NEWS[said]}", event) for said, path, event in handlers.WATCH_EVENTS if path == CONTROLLER]
    found: list[tuple[str, Any]] = [*BEGINNINGS, *news]
    for cause, event in found:
        called = handlers.HANDLERS[event].handler.__code__.co_names
        yield cause, event, tuple(name for name in called if name in PARTS)


def triggers(records: Sequence[Record], state: State) -> Diagram:
    """What leads to an election of the controller, and what only to a look whether to resign; lit: the election."""
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
    RULED:    ("somebody rules already: stop",),
    EPOCH:    ("read /controller_epoch: c, at version v", "(create it with 0 if it is missing)"),
    WRITE:    ("one transaction: create /controller, ephemeral,", "and set /controller_epoch to c + 1 if it is still at v"),
    WHOSE:    ("read both again: is it me, with c + 1?",),
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
    """What `elect` does, step by step, and how often each way was taken in this run; lit: the steps that were taken.

    Source: KafkaController.elect and KafkaZkClient.registerControllerAndIncrementControllerEpoch (2.8).
    """
    taken = ways(records)
    reached = {READ, *(target for (_, target), count in taken.items() if count)} if taken else set()
    boxes = [Box(key, lines, "current" if key == RULES else "full" if key in reached else "") for key, lines in STEPS.items()]
    return graph("elect", boxes, (Arrow(s, t, _counted(found, taken[s, t])) for s, found, t in ELECT), rankdir="TB")


def _counted(found: str, times: int) -> str:
    return " ".join(filter(None, [found, f"({times} times)" if times > 1 else "(once)" if times else ""]))


def ways(records: Iterable[Record]) -> Counter[tuple[str, str]]:
    """How often each arrow of ELECT was taken by the elections of a journal that have come to their end."""
    campaigns: dict[RecordId, list[Record]] = {}
    ended: dict[RecordId, None] = {}
    for record in records:
        if record.kind == "begin" and record.fields["event"] in CAMPAIGNS:
            campaigns[record.id] = []
        elif record.cause in campaigns:
            campaigns[record.cause].append(record)
            ended.update({record.cause: None} if record.kind in ("end", "fail") else {})
    return Counter(arrow for id in ended for arrow in _way(campaigns[id]))


CAMPAIGNS = {event.__name__ for _, event, called in causes() if "elect" in called}


def _way(records: Sequence[Record]) -> list[tuple[str, str]]:
    """The arrows that one election took."""
    tried = [
        r for r in records if r.kind == "write" and any(list(op[:2]) == ["create", CONTROLLER] for op in r.plain().fields["ops"])
    ]
    if not tried:
        return [(READ, RULED)]
    way, error = [(READ, EPOCH), (EPOCH, WRITE)], tried[-1].fields["error"]
    failed = any(r.kind == "fail" for r in records)
    if error is None:
        return [*way, (WRITE, FAILOVER), (FAILOVER, MOVE if failed else RULES)]
    if error not in ("NodeExists", "BadVersion"):
        return [*way, (WRITE, MOVE)]
    after = records[records.index(tried[-1]) :]
    us = any(r.kind == "learn" and r.fields["field"] == "controller_epoch" and r.fields["put"] for r in after)
    return [*way, (WRITE, WHOSE), *([(WHOSE, FAILOVER), (FAILOVER, MOVE if failed else RULES)] if us else [(WHOSE, RESIGN)])]


PICTURES: Mapping[str, Callable[[Sequence[Record], State], Diagram]] = {
    "controller": ring,
    "source": structure,
    "listeners": listeners,
    "triggers": triggers,
    "elect": flow,
    "heard": hearing_pictures.heard,
    "threads": hearing_pictures.threads,
}
"""By the name that `lab.diagram` knows them under."""
