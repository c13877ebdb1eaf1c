"""Tables of watch events: the znodes that brokers watch, with Kafka's handlers, and the events that a run has queued."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kcontrol.controller.handlers import design_of
from kcontrol.core.controller_rules import Rules
from kcontrol.core.errors import UserError
from kcontrol.core.events import ControllerState
from kcontrol.core.releases import is_since, value_in_force
from kcontrol.journal.journal import Record, RecordId
from kcontrol.lab.run import Run
from kcontrol.lab.support.late import frames, pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views import text, watch_counts

# fmt: off
HANDLER_NAMES: Mapping[str, tuple[tuple[str, str], ...]] = {
    # event                          (since, Kafka's class that queues or handles the event); "" where the release has no class
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


def handler_name(event: str, release: str) -> str | None:
    """Return Kafka's class that queues or handles an event, such as "BrokerChangeHandler" for "BrokerChange".

    Return None if the release has no class for the event.
    """
    rows = HANDLER_NAMES.get(event, ())
    return (value_in_force(rows, release) or None) if rows and is_since(rows[0][0], release) else None


class WatchedZNode(NamedTuple):
    """A watched znode: the kind of change, Kafka's handler, the event that the handler queues, and the watching brokers."""

    znode: str
    # "created", "deleted", "data" or "children"; several kinds are joined with " or ".
    change: str
    handler: str
    event: str
    # Kafka's ControllerState while the event is handled; None if a release has no such state.
    state: str | None
    # "every broker" or "the controller".
    watched_by: str


def watched_events(rules: Rules) -> list[WatchedZNode]:
    """Return each znode that brokers of a release watch, with each event that its changes cause.

    `rules` are those of the release. `state`, Kafka's ControllerState, is None before 0.11.0, which introduced these states.
    """
    found: dict[tuple[str, str], WatchedZNode] = {}
    for type_, pattern, event in design_of(rules).watches:
        znode, name, change = readable(pattern), event.__name__, SHORT.get(type_, type_)
        earlier, handler = found.get((znode, name)), handler_name(name, rules.release)
        if earlier:
            found[znode, name] = earlier._replace(change=f"{earlier.change} or {change}")
        elif handler:
            found[znode, name] = WatchedZNode(znode, change, handler, name, _state(rules, name), _watchers(znode))
    return list(found.values())


def readable(pattern: str) -> str:
    """Return the regular expression `pattern` of a watched path as a readable path, such as `/brokers/ids/<broker>`.

    The named group at the end of the expression becomes `<name>`. An expression that begins with a group gives the path of
    state znodes.
    """
    head, group, rest = pattern.partition("(?P<")
    return (f"{head}<{rest.partition('>')[0].removesuffix('_id')}>" if head else STATE_ZNODE) if group else head


def _state(rules: Rules, event: str) -> str | None:
    handlers = design_of(rules).handlers.items() if is_since("0.11.0", rules.release) else ()
    state = next((row.state for kind, row in handlers if kind.__name__ == event), ControllerState.IDLE)
    return None if state is ControllerState.IDLE else state.value


def _watchers(znode: str) -> str:
    watched_by_all = {path for path, _, who in watch_counts.ONE_CONTROLLER if who == watch_counts.ALL} | {"/controller_epoch"}
    return watch_counts.ALL if znode in watched_by_all else watch_counts.CONTROLLER


HANDLERS = {"change": "string", "handler": "string", "event": "string", "state": "string", "watched_by": "string"}


def event_handlers(run: Run) -> pd.DataFrame:
    """Each znode that brokers watch: the kind of change, Kafka's handler, the event, and who watches.

    `state` is Kafka's name of the state of the controller while it handles the event.
    """
    return frames.Wide(journal_tables.table((row._asdict() for row in watched_events(run._rules())), HANDLERS, "znode"))


# ---------------------------------------------------------------- the events of a run

# fmt: off
# `received` is the notification, request or timer that caused the event.
EVENTS = {"broker": "int64", "thread": "string", "received": "string", "handler": "string", "event": "string", "state": "string",
         "waited_ms": "Int64", "took_ms": "Int64", "result": "string"}
# fmt: on
HANDLED, UNDER_WAY, WAITS, PREEMPTED, DIED = "handled", "under way", "waits", "preempted", "ended with its broker"

PASSED_ON = ("PathChanged", "NewSession")

ORIGIN_TEXTS: Mapping[str, Callable[[Record], str]] = {
    "notify": lambda r: f"{r.fields['type']} {r.fields['path']}",
    "renew": lambda r: "the session has expired",
    "open": lambda r: "a new session is open",
    "start": lambda r: "the broker's start",
    "begin": lambda r: f"the handler of {r.to_json().fields['event']}",
    "fire_timer": lambda r: f"the timer {r.fields['timer']}",
    "respond": lambda r: f"a response of broker {r.id.node}",
    "submit": lambda r: f"a request of broker {r.id.node}",
    "act": lambda r: "a request of an admin client",
}


def watch_events(run: Run, broker: int | None = None) -> pd.DataFrame:
    """Each event in a controller's queue: its cause, the time in ms that it waited and took, its result.

    `result` is, for example, "handled", or "waits" before the event begins; `broker` limits the rows to this broker's queue.
    Raises UserError for a recording of real brokers.
    """
    records, rules = run.records, run._rules()
    if records[0].fields.get("world") == "recorded":
        raise UserError("A recording of real brokers has no events: play it with Lab.play(recording), and ask that lab.")
    rows = _rows(records, {event.__name__ for event in design_of(rules).handlers})
    chosen = (row for row in rows.values() if broker in (None, row["broker"]))
    found = []
    for row in chosen:
        handler = row["noticed"] and handler_name(row["event"], rules.release)
        found.append(row | {"handler": handler or "", "state": _state(rules, row["event"])})
    return frames.Wide(journal_tables.table(found, EVENTS, "id"))


def _rows(records: Sequence[Record], events: set[str]) -> dict[RecordId, dict[str, Any]]:
    by_id = {record.id: record for record in records}
    rows: dict[RecordId, dict[str, Any]] = {}
    begun: dict[RecordId, dict[str, Any]] = {}
    for record in records:
        match record.kind:
            case "enqueue":
                row = _queued(record.to_json(), by_id)
                if row["event"] in events:
                    rows[record.id] = row
            case "begin" if record.cause in rows:
                row = begun[record.id] = rows[record.cause]
                row |= {"waited_ms": record.at_ms - row["at_ms"], "began_ms": record.at_ms, "result": UNDER_WAY}
            case "end" if record.cause in begun:
                begun[record.cause] |= {"took_ms": record.at_ms - begun[record.cause]["began_ms"], "result": HANDLED}
            case "preempt" | "stop":
                _mark_lost(record, rows)
    return rows


def _queued(record: Record, by_id: Mapping[RecordId, Record]) -> dict[str, Any]:
    event = record.fields["event"]["event"]
    cause = _origin(record, by_id) if event in HANDLER_NAMES else by_id.get(record.cause) if record.cause else None
    said = ORIGIN_TEXTS.get("start" if event == "BrokerStartup" else cause.kind) if cause else None
    return {
        "id": str(record.id),
        "broker": record.id.node,
        "thread": record.fields["thread"],
        "received": said(cause) if cause and said else text.sentence(cause) if cause else text.A_CLIENT.lower(),
        "noticed": cause is not None and cause.kind in ("notify", "renew", "open"),
        "event": event,
        "at_ms": record.at_ms,
        "result": WAITS,
    }


def _origin(record: Record, by_id: Mapping[RecordId, Record]) -> Record | None:
    """What caused the event in a record `enqueue`; None if no cause is known."""
    cause = by_id.get(record.cause) if record.cause else None
    # In releases with ZkClient its event thread receives a notification and queues the event: the notification is the cause.
    if cause and cause.kind == "begin" and cause.to_json().fields["event"] in PASSED_ON:
        return _origin(by_id[cause.cause], by_id) if cause.cause else None
    return cause


def _mark_lost(record: Record, rows: Mapping[RecordId, dict[str, Any]]) -> None:
    """Set `result` of each event that `record` ends: a `stop` ends all waiting and unfinished events of the broker (DIED).

    A `preempt` removes the first waiting event from its thread's queue (PREEMPTED). `rows` has the rows of `handled_events`
    by the id of the `enqueue` record.
    """
    broker = record.fields.get("broker", record.id.node)
    waiting = [row for row in rows.values() if row["broker"] == broker and row["result"] in (WAITS, UNDER_WAY)]
    # All waiting and unfinished events of a stopped broker end with it.
    if record.kind == "stop":
        for row in waiting:
            row["result"] = DIED
        return
    # The other kind is "preempt". A preemption removes the first waiting event of the thread from its queue.
    first = next(row for row in waiting if row["result"] == WAITS and row["thread"] == record.fields["thread"])
    first["result"] = PREEMPTED


def counted(records: Sequence[Record], rules: Rules) -> Iterator[tuple[str, int]]:
    """Yield (event, count), such as ("BrokerChange", 3), for each kind of event that notifications or expired sessions caused.

    `rules` are those of the release. The order is that of each kind's first event in `records`.
    """
    rows = _rows(records, {event.__name__ for event in design_of(rules).handlers}).values()
    names = [row["event"] for row in rows if row["noticed"]]
    return ((name, names.count(name)) for name in dict.fromkeys(names))
