"""What a broker's controller module hears: who listens to which znode, what becomes of it, and what a run has heard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from kcontrol.controller.handlers import DESIGNS, LISTENED, WATCH_EVENTS
from kcontrol.errors import UserError
from kcontrol.events import ControllerState
from kcontrol.generations import LISTENERS, Rules
from kcontrol.lab import tables
from kcontrol.lab.frames import Wide
from kcontrol.releases import is_since, pick
from kcontrol.runtime.journal import Record, RecordId
from kcontrol.views import text, watching

# fmt: off
HEARERS: Mapping[str, tuple[tuple[str, str], ...]] = {
    # event                          since, Kafka's class that puts it into the queue, or that is called; "" for none any more
    "LeaderChange":                   (("0.8.0", "LeaderChangeListener"),),
    "ControllerEpochChange":          (("0.8.0", "ControllerEpochListener"), ("0.8.2", "")),  # KAFKA-1096
    "NewSession":                     (("0.8.0", "SessionExpirationListener"),),
    "RegisterBroker":                 (("0.8.0", "SessionExpireListener"),),
    "ControllerChange":               (("0.11.0", "ControllerChangeListener"), ("1.1.0", "ControllerChangeHandler")),
    "Reelect":                        (("0.11.0", "ControllerChangeListener"), ("1.1.0", "ControllerChangeHandler")),
    "Expire":                         (("1.1.0", "StateChangeHandler"),),
    "RegisterBrokerAndReelect":       (("1.1.0", "StateChangeHandler"),),
    "BrokerChange":                   (("0.8.0", "BrokerChangeListener"), ("1.1.0", "BrokerChangeHandler")),
    "BrokerModifications":            (("1.1.0", "BrokerModificationsHandler"),),
    "TopicChange":                    (("0.8.0", "TopicChangeListener"), ("1.1.0", "TopicChangeHandler")),
    "PartitionModifications":         (("0.8.0", "AddPartitionsListener"), ("0.10.0", "PartitionModificationsListener"),
                                       ("1.1.0", "PartitionModificationsHandler")),
    "TopicDeletion":                  (("0.8.1", "DeleteTopicsListener"), ("0.11.0", "TopicDeletionListener"),
                                       ("1.1.0", "TopicDeletionHandler")),
    "ZkPartitionReassignment":        (("0.8.0", "PartitionsReassignedListener"), ("0.11.0", "PartitionReassignmentListener"),
                                       ("1.1.0", "PartitionReassignmentHandler")),
    "PartitionReassignmentIsrChange": (("0.8.0", "ReassignedPartitionsIsrChangeListener"),
                                       ("0.11.0", "PartitionReassignmentIsrChangeListener"),
                                       ("1.1.0", "PartitionReassignmentIsrChangeHandler")),
    "ReplicaLeaderElection":          (("0.8.0", "PreferredReplicaElectionListener"),
                                       ("1.1.0", "PreferredReplicaElectionHandler")),
    "IsrChangeNotification":          (("0.9.0", "IsrChangeNotificationListener"), ("1.1.0", "IsrChangeNotificationHandler")),
    "LogDirEventNotification":        (("1.0.0", "LogDirEventNotificationListener"), ("1.1.0", "LogDirEventNotificationHandler")),
}
"""Source: the listeners and handlers at the end of KafkaController.scala; up to 0.10.2 also PartitionStateMachine.scala,
ReplicaStateMachine.scala, ZookeeperLeaderElector.scala and KafkaHealthcheck.scala."""
# fmt: on

SHORT = {"NodeCreated": "created", "NodeDeleted": "deleted", "NodeDataChanged": "data", "NodeChildrenChanged": "children"}
STATE_ZNODE = "/brokers/topics/<topic>/partitions/<partition>/state"


def hearer(event: str, release: str) -> str | None:
    """Kafka's name of the class that an event comes from, None where the release has none."""
    rows = HEARERS.get(event, ())
    return (pick(rows, release) or None) if rows and is_since(rows[0][0], release) else None


class Heard(NamedTuple):
    """One thing that is listened to: path, what may happen to it, who hears it, the event, and the state that it leads to."""

    znode: str
    news: str
    handler: str
    event: str
    state: str | None
    who: str


def listened(rules: Rules) -> list[Heard]:
    """Every znode and event that brokers of a release listen to, each once.

    `state` is None where there were no states of the controller yet.
    """
    rows: tuple[tuple[str, str, Any], ...] = LISTENED if rules.design == LISTENERS else WATCH_EVENTS
    found: dict[tuple[str, str], Heard] = {}
    for said, pattern, event in rows:
        znode, name, news = readable(pattern), event.__name__, SHORT.get(said, said)
        earlier, handler = found.get((znode, name)), hearer(name, rules.release)
        if earlier:
            found[znode, name] = earlier._replace(news=f"{earlier.news} or {news}")
        elif handler:
            found[znode, name] = Heard(znode, news, handler, name, _state(rules, name), _who(znode))
    return list(found.values())


def readable(pattern: str) -> str:
    r"""`/brokers/ids/(?P<broker_id>\d+)` as `/brokers/ids/<broker>`."""
    head, group, rest = pattern.partition("(?P<")
    return (f"{head}<{rest.partition('>')[0].removesuffix('_id')}>" if head else STATE_ZNODE) if group else head


def _state(rules: Rules, event: str) -> str | None:
    named = {
        kind.__name__: row.state.value for kind, row in DESIGNS[rules.design].items() if row.state is not ControllerState.IDLE
    }
    return named.get(event) if is_since("0.11.0", rules.release) else None


def _who(znode: str) -> str:
    everybody = {path for path, _, who in watching.ONE_CONTROLLER if who == watching.ALL} | {"/controller_epoch"}
    return watching.ALL if znode in everybody else watching.CONTROLLER


HANDLERS = {"news": "string", "handler": "string", "event": "string", "state": "string", "who": "string"}


def handlers(rules: Rules) -> pd.DataFrame:
    """One row per znode and event: what has to happen to it, Kafka's handler, the event, the controller's state, who listens."""
    return Wide(tables.table((row._asdict() for row in listened(rules)), HANDLERS, "znode"))


# ---------------------------------------------------------------- what a run has heard

# fmt: off
HEARD = {"broker": "int64", "thread": "string", "heard": "string", "handler": "string", "event": "string", "state": "string",
         "waited_ms": "Int64", "took_ms": "Int64", "became": "string"}
# fmt: on
HANDLED, UNDER_WAY, WAITS, PREEMPTED, DIED = "handled", "under way", "waits", "preempted", "died with its broker"

PASSED_ON = ("PathChanged", "NewSession")

SAID: Mapping[str, Callable[[Record], str]] = {
    "notify": lambda r: f"{r.fields['type']} {r.fields['path']}",
    "renew": lambda r: "the session has expired",
    "open": lambda r: "a new session is open",
    "start": lambda r: "the broker's start",
    "begin": lambda r: f"the handler of {r.plain().fields['event']}",
    "fire": lambda r: f"the timer {r.fields['timer']}",
    "respond": lambda r: f"an answer of broker {r.id.node}",
    "ask": lambda r: f"a request of broker {r.id.node}",
    "act": lambda r: "a request of an admin client",
}


def heard(records: Sequence[Record], broker: int | None = None) -> pd.DataFrame:
    """One row per event that a controller module has got, by the id of the record that queued it, in order.

    `heard` says where it came from, `became` whether it has been handled, was preempted, or waits. Raises UserError for a
    recording of real brokers, which says nothing of what they heard.
    """
    if records[0].fields.get("world") == "recorded":
        raise UserError("A recording says what brokers wrote and not what they heard: play it, and ask that run.")
    rules = _rules_of(records)
    rows = _rows(records, {event.__name__ for event in DESIGNS[rules.design]})
    chosen = (row for row in rows.values() if broker in (None, row["broker"]))
    named = (
        row | {"handler": (row["noticed"] and hearer(row["event"], rules.release)) or "", "state": _state(rules, row["event"])}
        for row in chosen
    )
    return Wide(tables.table(named, HEARD, "id"))


def _rules_of(records: Sequence[Record]) -> Rules:
    from kcontrol.generations import rules

    return rules(records[0].fields["release"])


def _rows(records: Sequence[Record], events: set[str]) -> dict[RecordId, dict[str, Any]]:
    by_id = {record.id: record for record in records}
    rows: dict[RecordId, dict[str, Any]] = {}
    begun: dict[RecordId, dict[str, Any]] = {}
    for record in records:
        match record.kind:
            case "enqueue":
                row = _queued(record.plain(), by_id)
                if row["event"] in events:
                    rows[record.id] = row
            case "begin" if record.cause in rows:
                row = begun[record.id] = rows[record.cause]
                row |= {"waited_ms": record.at_ms - row["at_ms"], "began_ms": record.at_ms, "became": UNDER_WAY}
            case "end" if record.cause in begun:
                begun[record.cause] |= {"took_ms": record.at_ms - begun[record.cause]["began_ms"], "became": HANDLED}
            case "preempt" | "stop":
                _lost(record, rows)
    return rows


def _queued(record: Record, by_id: Mapping[RecordId, Record]) -> dict[str, Any]:
    event = record.fields["event"]["event"]
    cause = _origin(record, by_id) if event in HEARERS else by_id.get(record.cause) if record.cause else None
    said = SAID.get("start" if event == "BrokerStartup" else cause.kind) if cause else None
    return {
        "id": str(record.id),
        "broker": record.id.node,
        "thread": record.fields["thread"],
        "heard": said(cause) if cause and said else text.say(cause) if cause else text.A_CLIENT.lower(),
        "noticed": cause is not None and cause.kind in ("notify", "renew", "open"),
        "event": event,
        "at_ms": record.at_ms,
        "became": WAITS,
    }


def _origin(record: Record, by_id: Mapping[RecordId, Record]) -> Record | None:
    """What an event goes back to: the cause of its queueing, or, where ZkClient's thread passed it on, of what that one got."""
    cause = by_id.get(record.cause) if record.cause else None
    if cause and cause.kind == "begin" and cause.plain().fields["event"] in PASSED_ON:
        return _origin(by_id[cause.cause], by_id) if cause.cause else None
    return cause


def _lost(record: Record, rows: Mapping[RecordId, dict[str, Any]]) -> None:
    """What becomes of that which waits: the first in a queue is preempted, or everything ends with the process."""
    broker = record.fields.get("broker", record.id.node)
    waiting = [row for row in rows.values() if row["broker"] == broker and row["became"] in (WAITS, UNDER_WAY)]
    if record.kind == "stop":
        for row in waiting:
            row["became"] = DIED
        return
    first = next(row for row in waiting if row["became"] == WAITS and row["thread"] == record.fields["thread"])
    first["became"] = PREEMPTED


def counted(records: Sequence[Record], rules: Rules) -> Iterator[tuple[str, int]]:
    """How often each event has come from a znode or a session in this run."""
    rows = _rows(records, {event.__name__ for event in DESIGNS[rules.design]}).values()
    names = [row["event"] for row in rows if row["noticed"]]
    return ((name, names.count(name)) for name in dict.fromkeys(names))
