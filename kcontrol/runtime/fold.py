"""The state that a picture shows, from the journal alone.

A test holds it equal to `World.snapshot()` after every step. Everything in it is plain: JSON's own types, partitions as `t-0`,
replicas as `t-0@1`, states under Kafka's names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kcontrol.model import LeaderAndIsr, TopicPartition
from kcontrol.runtime.journal import Record
from kcontrol.znodes import encode_state, state_path

GONE = ("NonExistentPartition", "NonExistentReplica")

EMPTY_NODE: dict[str, Any] = {
    "controller": {},
    "broker": {},
    "queues": {},
    "handling": {},
    "timers": {},
    "parked": {},
    "notices": [],
    "frozen": False,
}


EMPTY_LOG: dict[str, Any] = {
    "records": [],
    "epochs": [],
    "checkpoint": 0,
    "high_watermark": 0,
    "leader": -1,
    "leader_epoch": -1,
    "followers": [],
    "waiting": [],
    "truncating": False,
    "min_insync_replicas": None,
}
IN_MEMORY = ("leader", "leader_epoch", "followers", "waiting", "truncating", "min_insync_replicas")


class Fold:
    """Records in, state out: `Fold().all(records).state`.

    `state` has `znodes` (path to [text, zk version, owner's broker id or None]), `nodes` (broker id to its contexts, queues,
    handlers under way, timers, parked requests, undelivered watch events, and whether it is frozen) and `channels`
    ("sender>receiver" to what waits). Where brokers keep logs it also has `logs` (broker id to partition to log, those of dead
    brokers included) and `acknowledged` (partition to what producers rely on).
    """

    def __init__(self) -> None:
        self.state: dict[str, Any] = {"znodes": {}, "nodes": {}, "channels": {}, "questions": {}}
        self._sent: dict[str, dict[str, Any]] = {}

    def all(self, records: Iterable[Record]) -> Fold:
        for record in records:
            self.add(record)
        return self

    def add(self, record: Record) -> None:
        """Take in the next record, whether its fields are plain already or not; kinds that change no state are passed over."""
        if (change := CHANGES.get(record.kind)) is not None:
            change(self, record.plain())

    # ---------------------------------------------------------------- logs

    def _run(self, r: Record) -> None:
        if r.fields.get("data"):
            self.state |= {"logs": {}, "acknowledged": {}}
        if first := r.fields.get("consumers"):
            self.state |= {"consumers": first, "offsets_logs": {}}

    def _log(self, r: Record) -> None:
        f = r.fields
        found = self.state["logs"].setdefault(str(f.get("broker", r.id.node)), {})
        log = found.setdefault(f["partition"], EMPTY_LOG.copy())
        if r.kind == "log_append":
            log["records"] = log["records"] + f["records"]
        elif "removed" in f:
            log["records"] = log["records"][: f["offset"]]
        log.update(f["now"])

    def _log_delete(self, r: Record) -> None:
        logs, broker = self.state["logs"], str(r.id.node)
        del logs[broker][r.fields["partition"]]
        if not logs[broker]:
            del logs[broker]

    def _acknowledged(self, r: Record) -> None:
        promise = {name: value for name, value in r.fields.items() if name != "partition"}
        self.state["acknowledged"].setdefault(r.fields["partition"], []).append(promise)

    def _record_lost(self, r: Record) -> None:
        promised, tp = self.state["acknowledged"], r.fields["partition"]
        promised[tp] = [p for p in promised[tp] if p | {"partition": tp} != r.fields]
        if not promised[tp]:
            del promised[tp]

    # ---------------------------------------------------------------- processes

    def _node(self, record: Record) -> dict[str, Any]:
        node: dict[str, Any] = self.state["nodes"][str(record.id.node)]
        return node

    def _start(self, r: Record) -> None:
        group: dict[str, Any] = {"group": {}} if "consumers" in self.state else {}
        self.state["nodes"][str(r.fields["broker"])] = {name: type(value)() for name, value in EMPTY_NODE.items()} | group

    def _freeze(self, r: Record) -> None:
        self.state["nodes"][str(r.fields["broker"])]["frozen"] = r.kind == "freeze"

    def _stop(self, r: Record) -> None:
        broker = str(r.fields["broker"])
        del self.state["nodes"][broker]
        channels, unread, left = self.state["channels"], r.fields.get("unread", ()), r.fields.get("left", ())
        for pair in [pair for pair in channels if broker in pair.split(">")]:
            sender, receiver = map(int, pair.split(">"))
            waiting = channels.pop(pair)
            kept = waiting[: unread.count(receiver)] if str(sender) == broker else waiting[left.count(sender) :]
            channels |= {pair: kept} if kept else {}
        self.state["questions"].pop(broker, None)
        for log in self.state.get("logs", {}).get(broker, {}).values():
            log["high_watermark"] = min(log["checkpoint"], len(log["records"]))
            log.update({name: EMPTY_LOG[name] for name in IN_MEMORY})

    def _close(self, r: Record) -> None:
        for path in r.fields["deleted"]:
            del self.state["znodes"][path]

    def _session_lost(self, r: Record) -> None:
        self._node(r)["notices"].clear()

    # ---------------------------------------------------------------- queues

    def _notify(self, r: Record) -> None:
        self.state["nodes"][str(r.fields["to"])]["notices"].append([r.fields["type"], r.fields["path"]])

    def _drop(self, r: Record) -> None:
        self._node(r)["notices"].pop(0)

    def _enqueue(self, r: Record) -> None:
        node = self._node(r)
        if r.fields["noticed"]:
            node["notices"].pop(0)
        node["queues"].setdefault(r.fields["thread"], []).append(r.fields["event"])

    def _begin(self, r: Record) -> None:
        node, thread = self._node(r), r.fields["thread"]
        node["handling"][thread] = node["queues"][thread].pop(0)

    def _end(self, r: Record) -> None:
        del self._node(r)["handling"][r.fields["thread"]]

    def _preempt(self, r: Record) -> None:
        self._node(r)["queues"][r.fields["thread"]].pop(0)

    # ---------------------------------------------------------------- ZooKeeper

    def _write(self, r: Record) -> None:
        if r.fields["error"] is not None:
            return
        znodes = self.state["znodes"]
        for kind, path, text, version, ephemeral in r.fields["ops"]:
            if kind == "delete":
                del znodes[path]
            elif kind == "create":
                znodes[path] = [text, 0, r.id.broker if ephemeral else None]
            elif kind == "set":
                znodes[path] = [text, version, znodes[path][2]]

    def _change(self, r: Record) -> None:
        f, controller = r.fields, self._node(r)["controller"]
        partition = f["subject"].rpartition("@")[0] or f["subject"]
        states = controller.setdefault(f"{f['machine']}_states", {})
        if f["target"] in GONE:
            states.pop(f["subject"], None)
        else:
            states[f["subject"]] = f["target"]
        if f["value"] is None:
            return
        controller.setdefault("leadership", {})[partition] = f["value"]
        if f["write"]:
            v = f["value"]
            value = LeaderAndIsr.of_plain(v)
            self.state["znodes"][state_path(TopicPartition.parse(partition))] = [
                encode_state(value).decode(),
                v["zk_version"],
                None,
            ]

    # ---------------------------------------------------------------- what is believed

    def _learn(self, r: Record) -> None:
        f, context = r.fields, self._node(r).setdefault(r.fields["context"], {})
        if f["of"] == "value":
            context[f["field"]] = f["put"]
            return
        held = context.setdefault(f["field"], {} if f["of"] == "map" else [])
        if f["clear"]:
            held.clear()
        gone = set(map(str, f["remove"])) if f["of"] == "map" else set(f["remove"])
        if f["of"] == "map":
            for key in gone:
                held.pop(key, None)
            held.update(f["put"] or {})
        else:
            context[f["field"]] = sorted((set(held) - gone) | set(f["put"] or ()))

    def _group(self, r: Record) -> None:
        groups = self._node(r).setdefault("group", {}).setdefault("groups", {})
        groups[r.fields["group"]] = r.fields["value"]
        if r.fields["value"] is None:
            del groups[r.fields["group"]]

    def _consumer(self, r: Record) -> None:
        self.state["consumers"][r.fields["name"]] = r.fields["now"]

    def _offsets_append(self, r: Record) -> None:
        self.state["offsets_logs"].setdefault(r.fields["partition"], []).append(r.fields["batch"])

    def _adopt(self, r: Record) -> None:
        f, context = r.fields, self._node(r)["broker"]
        sent = self._sent[".".join(map(str, f["request"]))]
        if f["field"] == "metadata":
            told = sent["update_metadata"]["partitions"]
        else:
            named = sent["leader_and_isr"]
            told = {v["partition"]: _hosted(v) for v in (named["values"][i] for i in named["to"][str(r.id.node)])}
        chosen = told if f["partitions"] is None else {tp: told[tp] for tp in f["partitions"]}
        context.setdefault(f["field"], {}).update(chosen)

    # ---------------------------------------------------------------- what travels

    def _send(self, r: Record) -> None:
        sent = r.fields["requests"]
        self._sent[str(r.id)] = sent
        for key, api in (
            ("leader_and_isr", "LeaderAndIsr"),
            ("update_metadata", "UpdateMetadata"),
            ("stop_replica", "StopReplica"),
        ):
            for receiver in sent[key]["to"] if key in sent else ():
                self.state["channels"].setdefault(f"{r.id.node}>{receiver}", []).append([str(r.id), api])

    def _answered(self, r: Record) -> None:
        channels, pair = self.state["channels"], r.fields["channel"]
        channels[pair].pop(0)
        if not channels[pair]:
            del channels[pair]

    def _duplicate(self, r: Record) -> None:
        waiting = self.state["channels"][f"{r.fields['sender']}>{r.fields['receiver']}"]
        waiting.insert(0, waiting[0])

    def _close_channels(self, r: Record) -> None:
        channels, unread = self.state["channels"], r.fields.get("unread", [])
        for receiver in r.fields["to"]:
            kept = channels.pop(pair := f"{r.id.node}>{receiver}", [])[: unread.count(receiver)]
            channels |= {pair: kept} if kept else {}

    def _ask(self, r: Record) -> None:
        self.state["questions"].setdefault(str(r.id.node), []).append(
            {"record": str(r.id), "api": r.fields["api"], "body": r.fields["body"]}
        )

    def _told(self, r: Record) -> None:
        settled, questions = set(r.fields["settled"]), self.state["questions"]
        broker = str(r.fields["broker"])
        questions[broker] = [q for q in questions[broker] if q["record"] not in settled]
        if not questions[broker]:
            del questions[broker]

    def _arm(self, r: Record) -> None:
        f = r.fields
        self._node(r)["timers"][f["timer"]] = {"at_ms": f["fires_at_ms"], "thread": f["thread"], "event": f["event"]}

    def _disarm(self, r: Record) -> None:
        del self._node(r)["timers"][r.fields["timer"]]

    def _park(self, r: Record) -> None:
        self._node(r)["parked"][r.fields["correlation_id"]] = r.fields["key"]

    def _respond(self, r: Record) -> None:
        self._node(r)["parked"].pop(r.fields["correlation_id"], None)


CHANGES: dict[str, Callable[[Fold, Record], None]] = {
    "run": Fold._run,
    "start": Fold._start,
    "stop": Fold._stop,
    "freeze": Fold._freeze,
    "thaw": Fold._freeze,
    "close": Fold._close,
    "session_lost": Fold._session_lost,
    "notify": Fold._notify,
    "drop": Fold._drop,
    "enqueue": Fold._enqueue,
    "begin": Fold._begin,
    "end": Fold._end,
    "preempt": Fold._preempt,
    "write": Fold._write,
    "change": Fold._change,
    "learn": Fold._learn,
    "group": Fold._group,
    "consumer": Fold._consumer,
    "offsets_append": Fold._offsets_append,
    "adopt": Fold._adopt,
    "send": Fold._send,
    "answered": Fold._answered,
    "duplicate": Fold._duplicate,
    "close_channels": Fold._close_channels,
    "ask": Fold._ask,
    "told": Fold._told,
    "arm": Fold._arm,
    "cancel": Fold._disarm,
    "fire": Fold._disarm,
    "park": Fold._park,
    "respond": Fold._respond,
    "log_append": Fold._log,
    "log_truncate": Fold._log,
    "log_role": Fold._log,
    "log_config": Fold._log,
    "high_watermark": Fold._log,
    "follower_end": Fold._log,
    "checkpoint": Fold._log,
    "tail_lost": Fold._log,
    "log_delete": Fold._log_delete,
    "acknowledged": Fold._acknowledged,
    "record_lost": Fold._record_lost,
    "record_deleted": Fold._record_lost,
}


def _hosted(entry: dict[str, Any]) -> dict[str, Any]:
    names = ("leader", "isr", "leader_epoch", "zk_version", "controller_epoch")
    return {"value": {name: entry[name] for name in names}, "replicas": entry["replicas"], "pending_isr": []}


def fold(records: Iterable[Record]) -> dict[str, Any]:
    """The state after these records."""
    return Fold().all(records).state
