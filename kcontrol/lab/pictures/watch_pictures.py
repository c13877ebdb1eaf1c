"""Draws pictures of watch events: the path from a znode to the controller's state, and the threads that handle the events."""

from collections.abc import Sequence
from typing import Any

from kcontrol.broker.events import BrokerStartup
from kcontrol.controller.handlers import design_of
from kcontrol.core import events
from kcontrol.core.controller_rules import Rules, rules
from kcontrol.journal.journal import Record
from kcontrol.lab.tables import watch_handlers
from kcontrol.views import folded_state
from kcontrol.views.diagrams import Arrow, Box, Diagram, graph

State = dict[str, Any]


def watch_events(records: Sequence[Record], state: State) -> Diagram:
    """Draw each watched znode, the handler of its changes, the event that the handler enqueues, and the event's ControllerState.

    The events of this run are highlighted. `state` is not used.
    """
    chosen = rules(records[0].fields["release"])
    rows, counts = watch_handlers.watched_events(chosen), dict(watch_handlers.counted(records, chosen))
    boxes, arrows = dict[str, Box](), dict[Arrow, None]()
    for row in rows:
        times = counts.get(row.event, 0)
        does = f"puts {row.event}" if row.state else "decides"  # releases without states have no queue of events
        chain = {row.znode: _znode(row.znode), f"event {row.event}": (row.handler, does, *_times(times))}
        chain |= {f"state {row.state}": (row.state,)} if row.state else {}
        for key, lines in chain.items():
            boxes[key] = Box(key, lines, "full" if times or (key in boxes and boxes[key].css) else "")
        arrows |= dict.fromkeys(map(Arrow, chain, list(chain)[1:], (row.change, "")))
    # Graphviz puts the first of two unconnected parts at the bottom.
    return _fitted(graph("watch_events", reversed(boxes.values()), reversed(arrows)))


def _fitted(diagram: Diagram) -> Diagram:
    """Return the diagram after setting its greatest size to 9 x 20 inches."""
    diagram.graph_attr["size"] = "9,20"
    return diagram


def _times(times: int) -> tuple[str, ...]:
    return (f"received {'once' if times == 1 else f'{times} times'}",) if times else ()


def _znode(path: str) -> tuple[str, ...]:
    """`/partitions/...` stands on a second line."""
    head, below, rest = path.partition("/partitions/")
    return (head, below + rest) if rest else (path,)


# ---------------------------------------------------------------- threads

SOURCES: tuple[tuple[str, tuple[str, ...]], ...] = (
    # cause                                 the event, under its names in different releases
    ("the broker starts",                   ("Startup", "BrokerStartup")),
    ("notification of a znode",             ("PathChanged", "BrokerChange")),
    ("the session has expired",             ("Expire", "NewSession")),
    ("a request for a shutdown",            ("ControlledShutdown",)),
    ("the timer of the rebalance",          ("AutoPreferredReplicaLeaderElection",)),
    ("topics wait for their deletion",      ("DeletionsResumed", "TopicDeletion")),
    ("a response to StopReplica",           ("TopicDeletionStopReplicaResponseReceived",)),
)  # fmt: skip
DECIDES = "controller"  # the event thread, where there is one


def threads(records: Sequence[Record], state: State) -> Diagram:
    """Draw the causes of events, the threads that handle them, and the lock that the threads share in releases with a lock."""
    chosen = rules(records[0].fields["release"])
    node = state["nodes"].get(str((folded_state.controller(state) or (None,))[0]), {})
    locks = {name: lock for name, module, lock in design_of(chosen).threads if module == "controller"}
    known = {kind.__name__: kind for kind in design_of(chosen).handlers}
    arrows = [Arrow(what, _thread(chosen, next(known[name] for name in names if name in known))) for what, names in SOURCES]
    # `_box` highlights the threads of the active controller that handle an event now or have waiting events in `state`.
    drawn = [name for name in locks if name == DECIDES or any(arrow.target == name for arrow in arrows)]
    boxes = [*(Box(what, (what,)) for what, _ in SOURCES), *(_box(name, node) for name in drawn)]
    shared = {lock for lock in locks.values() if lock}
    boxes += [Box(lock, (lock,)) for lock in shared]
    boxes.append(Box("context", ("ControllerContext", "both state machines")))
    arrows += [Arrow(name, locks[name] or ("context" if name == DECIDES else DECIDES)) for name in drawn]
    arrows += [Arrow(lock, "context", "one at a time") for lock in shared]
    return _fitted(graph("threads", boxes, arrows))


def _thread(chosen: Rules, kind: type[events.Event]) -> str:
    design = design_of(chosen)
    return "main" if kind is BrokerStartup else design.routes.get(kind, design.default_thread)


def _box(name: str, node: State) -> Box:
    """The thread's name, the event that it handles, and its queued events."""
    busy, waiting = node.get("handling", {}).get(name), [event["event"] for event in node.get("queues", {}).get(name, ())]
    lines = [name, *([f"handles {busy['event']}"] if busy else []), *(f"waits: {event}" for event in waiting)]
    return Box(name, tuple(lines), "current" if busy else "full" if waiting else "")
