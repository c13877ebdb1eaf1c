"""Who watches what, and who is told: counted from a journal, as it was and as it would have been without a controller."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kcontrol.model import TopicPartition
from kcontrol.runtime.fold import Fold
from kcontrol.runtime.journal import Record
from kcontrol.views import scene
from kcontrol.znodes import parent, state_path

DATA, CHILDREN = "data", "children"
State = dict[str, Any]


class Watch(NamedTuple):
    """One watch that stands at ZooKeeper: it will tell `broker` once of a change of `path`, or of the names below it."""

    broker: int
    path: str
    kind: str


class News(NamedTuple):
    """One thing that ZooKeeper has to tell whoever watches: what has become of a path."""

    type: str
    path: str


# ---------------------------------------------------------------- as it was


def standing(records: Iterable[Record]) -> list[Watch]:
    """The watches that the sessions of living brokers have at ZooKeeper after the last record, sorted.

    A watch is left by a read, used up by the notification that it leads to, and forgotten with its session. `exists` and `read`
    leave one and the same; where nothing is, only `exists` does.
    """
    held: set[Watch] = set()
    for record in records:
        match record.kind:
            case "read" if record.fields["watch"]:
                held.update(_left(record.plain()))
            case "notify":
                held -= set(_used_up(record.fields))
            case "stop" | "close":
                held = {watch for watch in held if watch.broker != record.fields["broker"]}
    return sorted(held)


def _left(r: Record) -> Iterator[Watch]:
    how = r.fields["how"]
    for path, seen in zip(r.fields["paths"], r.fields["seen"], strict=True):
        if how == "exists" or seen is not None:
            yield Watch(r.id.node, path, CHILDREN if how == "children" else DATA)


def _used_up(f: Mapping[str, Any]) -> list[Watch]:
    kinds = {"NodeChildrenChanged": [CHILDREN], "NodeDeleted": [DATA, CHILDREN]}.get(f["type"], [DATA])
    return [Watch(f["to"], f["path"], kind) for kind in kinds]


def notified(records: Iterable[Record]) -> list[tuple[int, News]]:
    """What ZooKeeper has told whom, in order."""
    return [(r.fields["to"], News(r.fields["type"], r.fields["path"])) for r in records if r.kind == "notify"]


# ---------------------------------------------------------------- designs

ALL, CONTROLLER, REPLICAS = "every broker", "the controller", "its replicas"

# fmt: off
ONE_CONTROLLER: tuple[tuple[str, str, str], ...] = (
    # path                                                        watch     left by
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
    """What a design costs ZooKeeper in one run: watches that stand at its end, and notifications from one record on."""

    watches: int
    notifications: int


def count(records: Sequence[Record], rows: Rows, since: int = 0) -> Count:
    """What a run would have cost under a design: the same writes, with the watches that its rows say.

    Notifications are those of the records from number `since` on. They are counted as if whoever is told watched anew before the
    next write, so of two writes in a row a real ZooKeeper may tell of one only: it never tells more.
    """
    fold, told = Fold(), 0
    for number, record in enumerate(records):
        news = _news(record, fold.state) if number >= since else ()
        told += sum(len(_told(rows, fold.state, found)) for found in news)
        fold.add(record)
    watches = sum(len(_watchers(who, path, fold.state)) for path, _, who in _paths(rows, fold.state))
    return Count(watches, told)


def _told(rows: Rows, state: State, news: News) -> set[int]:
    """The brokers that a piece of news reaches: each once, though it watches both a znode and what is below it."""
    kinds = {kind for _, _, kind in _used_up({"to": 0, "type": news.type, "path": news.path})}
    watched = news.path in state["znodes"] or news.path in WITHOUT_ZNODE
    matching = (who for pattern, kind, who in rows if watched and kind in kinds and _matches(pattern, news.path))
    return {broker for who in matching for broker in _watchers(who, news.path, state)}


def _matches(pattern: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"<\w+>", "[^/]+", pattern), path) is not None


def _paths(rows: Rows, state: State) -> Iterator[tuple[str, str, str]]:
    """The rows with the paths that there are, and those that are watched though nothing is there."""
    for pattern, kind, who in rows:
        if pattern in WITHOUT_ZNODE:
            yield pattern, kind, who
        else:
            yield from ((path, kind, who) for path in state["znodes"] if _matches(pattern, path))


def _watchers(who: str, path: str, state: State) -> list[int]:
    """Who leaves a watch on this path under the design's rule: living brokers, by id."""
    living = [int(node) for node in state["nodes"]]
    if who == ALL:
        return sorted(living)
    if who == CONTROLLER:
        return [n for n in living if state["nodes"][str(n)]["controller"].get("active_controller_id") == n]
    found = (p for p in scene.partitions(state) if state_path(TopicPartition(p.topic, p.number)) == path)
    return sorted(b for p in found for b in p.replicas if b in living)


def _news(record: Record, state: State) -> list[News]:
    """What a record lets ZooKeeper tell; a path that is changed twice in one transaction is told of once."""
    f = record.fields
    if record.kind == "close":
        return [news for path in f["deleted"] for news in (News("NodeDeleted", path), _below(path))]
    if record.kind == "change" and f["write"]:
        path = state_path(TopicPartition.parse(record.plain().fields["subject"].partition("@")[0]))
        return _of_op("set" if path in state["znodes"] else "create", path)
    if record.kind != "write" or f["error"] is not None:
        return []
    created = {op[1] for op in f["ops"] if op[0] == "create"}
    found = [news for op in f["ops"] if op[0] != "set" or op[1] not in created for news in _of_op(op[0], op[1])]
    return list(dict.fromkeys(found))


def _of_op(kind: str, path: str) -> list[News]:
    types = {"create": "NodeCreated", "delete": "NodeDeleted", "set": "NodeDataChanged"}
    if kind not in types:
        return []
    return [News(types[kind], path), *([] if kind == "set" else [_below(path)])]


def _below(path: str) -> News:
    return News("NodeChildrenChanged", parent(path))
