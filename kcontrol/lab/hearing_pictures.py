"""Pictures of what a controller hears: from the znode to the state, and which thread it is that hears."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kcontrol import events
from kcontrol.controller.handlers import DESIGNS
from kcontrol.generations import Rules, rules
from kcontrol.lab import hearing
from kcontrol.runtime.journal import Record
from kcontrol.sim.process import LOCK, ROUTES, THREADS
from kcontrol.views import scene
from kcontrol.views.diagrams import Diagram
from kcontrol.views.graphs import Arrow, Box, graph

State = dict[str, Any]


def heard(records: Sequence[Record], state: State) -> Diagram:
    """Znode, handler and event, state of the controller: all that is listened to; lit, with its number, what this run heard."""
    chosen = rules(records[0].fields["release"])
    rows, counts = hearing.listened(chosen), dict(hearing.counted(records, chosen))
    boxes, arrows = dict[str, Box](), dict[Arrow, None]()
    for row in rows:
        times = counts.get(row.event, 0)
        does = f"puts {row.event}" if row.state else "decides"  # before there were states there was no queue
        chain = {row.znode: _znode(row.znode), f"event {row.event}": (row.handler, does, *_times(times))}
        chain |= {f"state {row.state}": (row.state,)} if row.state else {}
        for key, lines in chain.items():
            boxes[key] = Box(key, lines, "full" if times or (key in boxes and boxes[key].css) else "")
        arrows |= dict.fromkeys(map(Arrow, chain, list(chain)[1:], (row.news, "")))
    # Graphviz puts what comes first at the bottom, where parts of a picture are not connected.
    return _fitted(graph("heard", reversed(boxes.values()), reversed(arrows)))


def _fitted(diagram: Diagram) -> Diagram:
    """No wider than a page, in inches."""
    diagram.graph_attr["size"] = "9,20"
    return diagram


def _times(times: int) -> tuple[str, ...]:
    return (f"heard {'once' if times == 1 else f'{times} times'}",) if times else ()


def _znode(path: str) -> tuple[str, ...]:
    """A path in one line, or in two where it is long."""
    head, below, rest = path.partition("/partitions/")
    return (head, below + rest) if rest else (path,)


# ---------------------------------------------------------------- threads

SOURCES: tuple[tuple[str, tuple[str, ...]], ...] = (
    # what happens                          the event, under one name or another
    ("the broker starts",                   ("Startup", "BrokerStartup")),
    ("news of a znode",                     ("PathChanged", "BrokerChange")),
    ("the session has expired",             ("Expire", "NewSession")),
    ("a broker asks to stop",               ("ControlledShutdown",)),
    ("it is time to look at leaders",       ("AutoPreferredReplicaLeaderElection",)),
    ("topics wait for their deletion",      ("DeletionsResumed", "TopicDeletion")),
    ("an answer to StopReplica",            ("TopicDeletionStopReplicaResponseReceived",)),
)  # fmt: skip
DECIDES = "controller"  # the event thread, where there is one


def threads(records: Sequence[Record], state: State) -> Diagram:
    """What happens to a controller, the thread that hears of it, and the lock that threads share, where there is one.

    Lit is what the broker that rules is at: a thread with a handler under way, and those for which events wait.
    """
    chosen = rules(records[0].fields["release"])
    node = state["nodes"].get(str((scene.controller(state) or (None,))[0]), {})
    locks = {name: lock for name, room, lock in THREADS[chosen.design] if room == "controller"}
    known = {kind.__name__: kind for kind in DESIGNS[chosen.design]}
    arrows = [Arrow(what, _thread(chosen, next(known[name] for name in names if name in known))) for what, names in SOURCES]
    heard = [name for name in locks if name == DECIDES or any(arrow.target == name for arrow in arrows)]
    boxes = [*(Box(what, (what,)) for what, _ in SOURCES), *(_box(name, node) for name in heard)]
    boxes += [Box(LOCK, (LOCK,))] if LOCK in locks.values() else []
    boxes.append(Box("context", ("ControllerContext", "both state machines")))
    arrows += [Arrow(name, locks[name] or ("context" if name == DECIDES else DECIDES)) for name in heard]
    arrows += [Arrow(LOCK, "context", "one at a time")] if LOCK in locks.values() else []
    return _fitted(graph("threads", boxes, arrows))


def _thread(chosen: Rules, kind: type[events.Event]) -> str:
    usual, others = ROUTES[chosen.design]
    return "main" if kind is events.BrokerStartup else others.get(kind, usual)


def _box(name: str, node: State) -> Box:
    """A thread with what it does and what waits for it."""
    busy, waiting = node.get("handling", {}).get(name), [event["event"] for event in node.get("queues", {}).get(name, ())]
    lines = [name, *([f"handles {busy['event']}"] if busy else []), *(f"waits: {event}" for event in waiting)]
    return Box(name, tuple(lines), "current" if busy else "full" if waiting else "")
