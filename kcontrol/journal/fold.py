"""The fold: the state of a cluster after any record, computed from the journal alone.

A test checks that the fold equals `World.snapshot()` after every step. All values are JSON's own types: partitions as
`t-0`, replicas as `t-0@1` (the replica on broker 1), states under Kafka's names.

CHANGES is the table: one function for each kind of record that changes the state. Other kinds, such as `read`, are
skipped. The function makes its changes through `state_changes.py`, which also lists the changes for the viewer.

Read next: `state_changes.py` (the operations), `state_history.py` (the state at an earlier record), `record_fields.py`
(the fields of each kind).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kcontrol.core.model import LeaderAndIsr, TopicPartition
from kcontrol.core.znodes import encode_state, state_path
from kcontrol.journal.journal import Record
from kcontrol.journal.record_fields import PROMISE
from kcontrol.journal.state_changes import Changes

GONE = ("NonExistentPartition", "NonExistentReplica")

APIS = {"leader_and_isr": "LeaderAndIsr", "update_metadata": "UpdateMetadata", "stop_replica": "StopReplica"}
EMPTY_NODE: dict[str, Any] = {
    "controller": {}, "broker": {}, "queues": {}, "handling": {}, "timers": {}, "parked": {}, "notifications": [],
    "frozen": False,
}  # fmt: skip


EMPTY_LOG: dict[str, Any] = {
    "records": [], "epochs": [], "checkpoint": 0, "high_watermark": 0, "leader": -1, "leader_epoch": -1, "followers": [],
    "waiting": [], "truncating": False, "min_insync_replicas": None, "segments": [{"base_offset": 0, "modified_ms": 0}],
    "first_dirty_offset": 0, "delete_horizons": [], "empty_until": 0, "compaction": None,
}  # fmt: skip
IN_MEMORY = ("leader", "leader_epoch", "followers", "waiting", "truncating", "min_insync_replicas", "compaction")


def end_offset(log: Mapping[str, Any]) -> int:
    """Greater than the number of records in a cleaned log, which has gaps."""
    records: list[dict[str, int]] = log["records"]
    return max(records[-1]["offset"] + 1 if records else 0, int(log["empty_until"]))


def _promise(r: Record) -> dict[str, Any]:
    return {name: r.fields.get(name) for name in PROMISE if name != "partition"}


class Fold(Changes):
    """The state of a cluster after the journal records that were added; `noted` lists the changes of the last record.

    `state` has these parts:

    * `znodes`: path to [text, zk version, owner's broker id or None].
    * `nodes`: broker id to an object with the memory of the broker's `controller`, `broker` and `group` coordinator, the `queues`
      of its threads, the event that each thread is `handling`, `timers` (name to firing time, thread and event), `parked`
      (correlation id of a request to the condition for which its response waits), `notifications` (watch events that the broker
      has not handled), and `frozen` (whether the broker's process is frozen, as by SIGSTOP).
    * `channels`: "sender>receiver" to the requests in the channel from a controller to a broker.
    * `to_controller`: broker id to this broker's requests to the controller that have no response.
    * If the run has brokers that store records (`data`), `logs`: broker id to partition to log, an object as EMPTY_LOG, including
      dead brokers; and `acknowledged`: partition to acknowledged records.
    * If there are consumers, `consumers`: name to the consumer's state. A recorded group also has `offsets_logs`: partition of
      the offsets topic to its log, one log for all replicas.
    """

    def __init__(self) -> None:
        super().__init__({"znodes": {}, "nodes": {}, "channels": {}, "to_controller": {}})
        self._sent: dict[str, dict[str, Any]] = {}

    def all(self, records: Iterable[Record]) -> Fold:
        for record in records:
            self.add(record)
        return self

    def add(self, record: Record) -> None:
        """Fields of the record may have Python's types or JSON's."""
        self.noted = []
        if (change := CHANGES.get(record.kind)) is not None:
            change(self, record.to_json())

    # ---------------------------------------------------------------- logs

    def _run(self, r: Record) -> None:
        if r.fields.get("data"):
            self.put({}, "logs")
            self.put({}, "acknowledged")
        if first := r.fields.get("consumers"):
            self.put(dict(first), "consumers")

    def _log(self, r: Record) -> None:
        f, path = r.fields, ("logs", str(r.fields.get("broker", r.id.node)), r.fields["partition"])
        self.need({}, "logs")
        self.need({}, *path[:2])
        self.need(EMPTY_LOG.copy(), *path)
        if r.kind == "log_append":
            self.extend(f["records"], *path, "records")
        elif "removed" in f:
            held, gone = self._at(path)["records"], {record["offset"] for record in f["removed"]}
            kept = [record for record in held if record["offset"] not in gone]
            if r.kind == "log_clean":
                self.put(kept, *path, "records")
            else:
                self.keep(len(kept), *path, "records")
        self.update(f["now"], *path)

    def _log_delete(self, r: Record) -> None:
        broker = str(r.id.node)
        self.drop("logs", broker, r.fields["partition"])
        self._unless_empty("logs", broker)

    def _acknowledged(self, r: Record) -> None:
        self.need({}, "acknowledged")
        self.need([], "acknowledged", r.fields["partition"])
        self.push(_promise(r), "acknowledged", r.fields["partition"])

    def _record_lost(self, r: Record) -> None:
        tp = r.fields["partition"]
        kept = [p for p in self.state["acknowledged"][tp] if p != _promise(r)]
        self._put_or_drop(kept, "acknowledged", tp)

    # ---------------------------------------------------------------- processes

    def _unless_empty(self, *path: str) -> None:
        """An empty value has no key in the folded state."""
        if not self._at(path):
            self.drop(*path)

    def _put_or_drop(self, values: list[Any], *path: str) -> None:
        """Put the list `values` at `path`, such as "acknowledged", "t-0"; for an empty list remove the last key."""
        if values:
            self.put(values, *path)
        else:
            self.drop(*path)

    def _start(self, r: Record) -> None:
        group: dict[str, Any] = {"group": {}} if "consumers" in self.state else {}
        node = {name: type(value)() for name, value in EMPTY_NODE.items()} | group
        self.put(node, "nodes", str(r.fields["broker"]))

    def _freeze(self, r: Record) -> None:
        self.put(r.kind == "freeze", "nodes", str(r.fields["broker"]), "frozen")

    def _stop(self, r: Record) -> None:
        broker = str(r.fields["broker"])
        self.drop("nodes", broker)
        channels, unread_by, orphaned_by = self.state["channels"], r.fields.get("unread_by", ()), r.fields.get("orphaned_by", ())
        for pair in [pair for pair in channels if broker in pair.split(">")]:
            sender, receiver = map(int, pair.split(">"))
            waiting = channels[pair]
            kept = waiting[: unread_by.count(receiver)] if str(sender) == broker else waiting[orphaned_by.count(sender) :]
            self._put_or_drop(kept, "channels", pair)
        if broker in self.state["to_controller"]:
            self.drop("to_controller", broker)
        for tp, log in self.state.get("logs", {}).get(broker, {}).items():
            on_disk = {"high_watermark": min(log["checkpoint"], end_offset(log))}
            self.update(on_disk | {name: EMPTY_LOG[name] for name in IN_MEMORY}, "logs", broker, tp)

    def _close(self, r: Record) -> None:
        for path in r.fields["deleted"]:
            self.drop("znodes", path)

    def _session_lost(self, r: Record) -> None:
        self.put([], "nodes", str(r.id.node), "notifications")

    # ---------------------------------------------------------------- queues

    def _notify(self, r: Record) -> None:
        self.push([r.fields["type"], r.fields["path"]], "nodes", str(r.fields["to"]), "notifications")

    def _drop_notification(self, r: Record) -> None:
        self.shift("nodes", str(r.id.node), "notifications")

    def _enqueue(self, r: Record) -> None:
        if r.fields["is_notification"]:
            self._drop_notification(r)
        path = ("nodes", str(r.id.node), "queues", r.fields["thread"])
        self.need([], *path)
        self.push(r.fields["event"], *path)

    def _begin(self, r: Record) -> None:
        broker, thread = str(r.id.node), r.fields["thread"]
        self.put(self.shift("nodes", broker, "queues", thread), "nodes", broker, "handling", thread)

    def _end(self, r: Record) -> None:
        self.drop("nodes", str(r.id.node), "handling", r.fields["thread"])

    def _preempt(self, r: Record) -> None:
        self.shift("nodes", str(r.id.node), "queues", r.fields["thread"])

    # ---------------------------------------------------------------- ZooKeeper

    def _write(self, r: Record) -> None:
        if r.fields["error"] is not None:
            return
        for kind, path, text, version, ephemeral in r.fields["ops"]:
            if kind == "delete":
                self.drop("znodes", path)
            elif kind == "create":
                self.put([text, 0, r.id.broker if ephemeral else None], "znodes", path)
            elif kind == "set":
                self.put([text, version, self.state["znodes"][path][2]], "znodes", path)

    def _change(self, r: Record) -> None:
        f, controller = r.fields, ("nodes", str(r.id.node), "controller")
        states, subject = f"{f['machine']}_states", f["subject"]
        held = self.need({}, *controller, states)
        if f["target"] not in GONE:
            self.put(f["target"], *controller, states, subject)
        elif subject in held:
            self.drop(*controller, states, subject)
        if (leadership := f["leadership"]) is None:
            return
        partition = subject.rpartition("@")[0] or subject
        self.need({}, *controller, "leadership")
        self.put(leadership, *controller, "leadership", partition)
        if f["write"]:
            text = encode_state(LeaderAndIsr.from_json(leadership)).decode()
            self.put([text, leadership["zk_version"], None], "znodes", state_path(TopicPartition.parse(partition)))

    # ---------------------------------------------------------------- contexts

    def _update_context(self, r: Record) -> None:
        f, context = r.fields, ("nodes", str(r.id.node), r.fields["context"])
        path = (*context, f["field"])
        self.need({}, *context)
        if f["container"] == "value":
            self.put(f["put"], *path)
        elif f["container"] == "set":
            held = set() if f["clear"] else set(self.need([], *path))
            self.put(sorted((held - set(f["remove"])) | set(f["put"] or ())), *path)
        else:
            self._update_map(f, path)

    def _update_map(self, f: dict[str, Any], path: tuple[str, ...]) -> None:
        if f["clear"]:
            self.put({}, *path)
        self.need({}, *path)
        if f["remove"]:
            self.omit(f["remove"], *path)
        if f["put"]:
            self.update(f["put"], *path)

    def _group(self, r: Record) -> None:
        f, context = r.fields, ("nodes", str(r.id.node), "group")
        self.need({}, *context)
        groups = self.need({}, *context, "groups")
        if f["group_metadata"] is not None:
            self.put(f["group_metadata"], *context, "groups", f["group_id"])
        elif f["group_id"] in groups:
            self.drop(*context, "groups", f["group_id"])

    def _consumer(self, r: Record) -> None:
        self.need({}, "consumers")
        self.put(r.fields["now"], "consumers", r.fields["name"])

    def _offsets_append(self, r: Record) -> None:
        self.need({}, "offsets_logs")
        self.need([], "offsets_logs", r.fields["partition"])
        self.push(r.fields["batch"], "offsets_logs", r.fields["partition"])

    def _apply_request(self, r: Record) -> None:
        f, path = r.fields, ("nodes", str(r.id.node), "broker", r.fields["field"])
        sent = self._sent[".".join(map(str, f["request"]))]
        if f["field"] == "metadata":
            entries = sent["update_metadata"]["partitions"]
        else:
            named = sent["leader_and_isr"]
            entries = {v["partition"]: _hosted(v) for v in (named["values"][i] for i in named["to"][str(r.id.node)])}
        self.need({}, *path)
        self.update(entries if f["partitions"] is None else {tp: entries[tp] for tp in f["partitions"]}, *path)

    # ---------------------------------------------------------------- requests, responses and timers

    def _send(self, r: Record) -> None:
        sent = r.fields["requests"]
        self._sent[str(r.id)] = sent
        for key, api in APIS.items():
            for receiver in sent[key]["to"] if key in sent else ():
                self.need([], "channels", pair := f"{r.id.node}>{receiver}")
                self.push([str(r.id), api], "channels", pair)

    def _response(self, r: Record) -> None:
        self.shift("channels", r.fields["channel"])
        self._unless_empty("channels", r.fields["channel"])

    def _duplicate(self, r: Record) -> None:
        pair = f"{r.fields['sender']}>{r.fields['receiver']}"
        waiting = self.state["channels"][pair]
        self.put([waiting[0], *waiting], "channels", pair)

    def _close_channels(self, r: Record) -> None:
        channels, unread_by = self.state["channels"], r.fields.get("unread_by", [])
        for receiver in r.fields["to"]:
            if (pair := f"{r.id.node}>{receiver}") in channels:
                self._put_or_drop(channels[pair][: unread_by.count(receiver)], "channels", pair)

    def _to_controller(self, r: Record) -> None:
        self.need([], "to_controller", str(r.id.node))
        asked = {"record": str(r.id), "api": r.fields["api"], "body": r.fields["body"]}
        self.push(asked, "to_controller", str(r.id.node))

    def _controller_response(self, r: Record) -> None:
        settled, broker = set(r.fields["requests"]), str(r.fields["broker"])
        self._put_or_drop([q for q in self.state["to_controller"][broker] if q["record"] not in settled], "to_controller", broker)

    def _set_timer(self, r: Record) -> None:
        f = r.fields
        timer = {"at_ms": f["fires_at_ms"], "thread": f["thread"], "event": f["event"]}
        self.put(timer, "nodes", str(r.id.node), "timers", f["timer"])

    def _cancel_timer(self, r: Record) -> None:
        self.drop("nodes", str(r.id.node), "timers", r.fields["timer"])

    def _park(self, r: Record) -> None:
        self.put(r.fields["key"], "nodes", str(r.id.node), "parked", r.fields["correlation_id"])

    def _respond(self, r: Record) -> None:
        parked = ("nodes", str(r.id.node), "parked")
        if r.fields["correlation_id"] in self._at(parked):
            self.drop(*parked, r.fields["correlation_id"])


CHANGES: dict[str, Callable[[Fold, Record], None]] = {
    "run": Fold._run, "start": Fold._start, "stop": Fold._stop, "freeze": Fold._freeze, "thaw": Fold._freeze,
    "close": Fold._close, "session_lost": Fold._session_lost, "notify": Fold._notify,
    "drop_notification": Fold._drop_notification, "enqueue": Fold._enqueue, "begin": Fold._begin, "end": Fold._end,
    "preempt": Fold._preempt, "write": Fold._write, "change": Fold._change, "update": Fold._update_context, "group": Fold._group,
    "consumer": Fold._consumer, "offsets_append": Fold._offsets_append, "apply_request": Fold._apply_request, "send": Fold._send,
    "response": Fold._response, "duplicate_request": Fold._duplicate, "close_channels": Fold._close_channels,
    "submit": Fold._to_controller, "controller_response": Fold._controller_response, "set_timer": Fold._set_timer,
    "cancel_timer": Fold._cancel_timer, "fire_timer": Fold._cancel_timer, "park": Fold._park, "respond": Fold._respond,
    "log_delete": Fold._log_delete, "acknowledged": Fold._acknowledged, "record_lost": Fold._record_lost,
    "record_deleted": Fold._record_lost,
    **dict.fromkeys(("log_append", "log_truncate", "log_clean", "log_role", "log_config", "append_timeout", "high_watermark",
                     "follower_end", "checkpoint", "tail_lost"), Fold._log),
}  # fmt: skip


def _hosted(entry: dict[str, Any]) -> dict[str, Any]:
    names = ("leader", "isr", "leader_epoch", "zk_version", "controller_epoch")
    return {"leadership": {name: entry[name] for name in names}, "replicas": entry["replicas"], "pending_isr": []}


def fold(records: Iterable[Record]) -> dict[str, Any]:
    """Return the state of the cluster after these records, as a dict with the parts that the docstring of `Fold` lists."""
    return Fold().all(records).state
