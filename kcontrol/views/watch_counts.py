"""Counts watches at ZooKeeper, and the notifications that ZooKeeper sends for them, in a journal.

The watches are those of the run, or those of another design (DESIGNS), such as that every broker, instead of the controller
alone, watches the topics. The notifications for such a design are computed from the writes of the run.

Watches have no records of their own: they follow from the reads, and a test compares them with ZooKeeper's table.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kcontrol.core.model import TopicPartition
from kcontrol.core.znodes import parent, state_path
from kcontrol.journal.fold import Fold
from kcontrol.journal.journal import Record
from kcontrol.views import folded_state

DATA, CHILDREN = "data", "children"
State = dict[str, Any]


class Watch(NamedTuple):
    """A watch at ZooKeeper: `broker` gets one notification of the next change.

    `kind` is "data" for a watch of the znode `path`, "children" for a watch of the names of its children.
    """

    broker: int
    path: str
    kind: str


class WatchNotification(NamedTuple):
    """A watch notification of ZooKeeper: the type of change, such as "NodeDeleted", and the path."""

    type: str
    path: str


# ---------------------------------------------------------------- watches of the run


def open_watches(records: Iterable[Record]) -> list[Watch]:
    """Return the watches that are set at ZooKeeper after the last journal record, sorted."""
    held: set[Watch] = set()
    for record in records:
        match record.kind:
            case "read" if record.fields["watch"]:
                # On a missing znode only `exists` sets a watch.
                held.update(_set(record.to_json()))
            case "notify":
                held -= set(_fired(record.fields))
            case "stop" | "close":
                # An ended broker or session has no watch.
                held = {watch for watch in held if watch.broker != record.fields["broker"]}
    return sorted(held)


def _set(r: Record) -> Iterator[Watch]:
    how = r.fields["how"]
    for path, seen in zip(r.fields["paths"], r.fields["seen"], strict=True):
        if how == "exists" or seen is not None:
            yield Watch(r.id.node, path, CHILDREN if how == "children" else DATA)


def _fired(f: Mapping[str, Any]) -> list[Watch]:
    kinds = {"NodeChildrenChanged": [CHILDREN], "NodeDeleted": [DATA, CHILDREN]}.get(f["type"], [DATA])
    return [Watch(f["to"], f["path"], kind) for kind in kinds]


# ---------------------------------------------------------------- designs

ALL, CONTROLLER, REPLICAS = "every broker", "the controller", "its replicas"

# fmt: off
ONE_CONTROLLER: tuple[tuple[str, str, str], ...] = (
    # path                                                        watch     set by
    ("/controller",                                               DATA,     ALL),
    ("/brokers/ids",                                              CHILDREN, CONTROLLER),
    ("/brokers/ids/<broker>",                                     DATA,     CONTROLLER),
    ("/brokers/topics",                                           CHILDREN, CONTROLLER),
    ("/brokers/topics/<topic>",                                   DATA,     CONTROLLER),
    ("/admin/delete_topics",                                      CHILDREN, CONTROLLER),
    ("/admin/reassign_partitions",                                DATA,     CONTROLLER),
    ("/admin/preferred_replica_election",                         DATA,     CONTROLLER),
    ("/isr_change_notification",                                  CHILDREN, CONTROLLER),
    ("/log_dir_event_notification",                               CHILDREN, CONTROLLER),
)

EVERY_BROKER: tuple[tuple[str, str, str], ...] = (
    ("/brokers/ids",                                              CHILDREN, ALL),
    ("/brokers/ids/<broker>",                                     DATA,     ALL),
    ("/brokers/topics",                                           CHILDREN, ALL),
    ("/brokers/topics/<topic>",                                   DATA,     ALL),
    ("/brokers/topics/<topic>/partitions/<partition>/state",      DATA,     REPLICAS),
)
# fmt: on
DESIGNS = {"one controller": ONE_CONTROLLER, "every broker watches": EVERY_BROKER}
WITHOUT_ZNODE = ("/controller", "/admin/reassign_partitions", "/admin/preferred_replica_election")

Rows = Sequence[tuple[str, str, str]]


class Count(NamedTuple):
    """The numbers of watches and notifications in one run if brokers watched the paths of one design.

    A design is a table in DESIGNS: the watched paths, and the brokers that watch them.
    """

    # The number of watches at the end of the run.
    watches: int
    # The number of notifications that ZooKeeper sends from a chosen journal record on.
    notifications: int


def count(records: Sequence[Record], rows: Rows, since: int = 0) -> Count:
    """Return the numbers of watches and notifications in a run if brokers watched the paths of `rows`.

    A row is (path, kind, watchers): ("/brokers/ids", "children", "every broker"). Records before the index `since` cause no
    notifications.
    """
    fold, sent = Fold(), 0
    for number, record in enumerate(records):
        # Each broker sets its watch again before the next write; a real ZooKeeper may send fewer notifications for two writes
        # in a row.
        found = _notifications(record, fold.state) if number >= since else ()
        sent += sum(len(_receivers(rows, fold.state, notification)) for notification in found)
        fold.add(record)
    watches = sum(len(_watchers(who, path, fold.state)) for path, _, who in _paths(rows, fold.state))
    return Count(watches, sent)


def _receivers(rows: Rows, state: State, sent: WatchNotification) -> set[int]:
    """As if brokers watched the paths of `rows`, in `state`, the one before the change."""
    kinds = {kind for _, _, kind in _fired({"to": 0, "type": sent.type, "path": sent.path})}
    watched = sent.path in state["znodes"] or sent.path in WITHOUT_ZNODE
    matching = (who for pattern, kind, who in rows if watched and kind in kinds and _matches(pattern, sent.path))
    # A broker gets one notification, even if it has a data watch and a child watch.
    return {broker for who in matching for broker in _watchers(who, sent.path, state)}


def _matches(pattern: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"<\w+>", "[^/]+", pattern), path) is not None


def _paths(rows: Rows, state: State) -> Iterator[tuple[str, str, str]]:
    """(path, kind of watch, watchers) for each znode that matches a row's pattern."""
    for pattern, kind, who in rows:
        # Brokers watch this path also without a znode.
        if pattern in WITHOUT_ZNODE:
            yield pattern, kind, who
        else:
            yield from ((path, kind, who) for path in state["znodes"] if _matches(pattern, path))


def _watchers(who: str, path: str, state: State) -> list[int]:
    """`who` is "every broker", "the controller" or, for a state znode, "its replicas"."""
    living = [int(node) for node in state["nodes"]]
    if who == ALL:
        return sorted(living)
    if who == CONTROLLER:
        return [n for n in living if state["nodes"][str(n)]["controller"].get("active_controller_id") == n]
    found = (p for p in folded_state.partitions(state) if state_path(TopicPartition(p.topic, p.number)) == path)
    return sorted(b for p in found for b in p.replicas if b in living)


def _notifications(record: Record, state: State) -> list[WatchNotification]:
    """What a record causes in the state before it; a path that a transaction changes twice causes one notification."""
    f = record.fields
    if record.kind == "close":
        return [sent for path in f["deleted"] for sent in (WatchNotification("NodeDeleted", path), _below(path))]
    if record.kind == "change" and f["write"]:
        path = state_path(TopicPartition.parse(record.to_json().fields["subject"].partition("@")[0]))
        return _of_op("set" if path in state["znodes"] else "create", path)
    if record.kind != "write" or f["error"] is not None:
        return []
    created = {op[1] for op in f["ops"] if op[0] == "create"}
    found = [sent for op in f["ops"] if op[0] != "set" or op[1] not in created for sent in _of_op(op[0], op[1])]
    return list(dict.fromkeys(found))


def _of_op(kind: str, path: str) -> list[WatchNotification]:
    types = {"create": "NodeCreated", "delete": "NodeDeleted", "set": "NodeDataChanged"}
    if kind not in types:
        return []
    return [WatchNotification(types[kind], path), *([] if kind == "set" else [_below(path)])]


def _below(path: str) -> WatchNotification:
    return WatchNotification("NodeChildrenChanged", parent(path))
