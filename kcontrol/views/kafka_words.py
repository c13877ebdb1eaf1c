"""Functions that convert a journal into the lines of state-change.log, controller.log and server.log that a Kafka release writes.

The lines of group coordinators are in `kafka_group_words.py`.

A line is written where Kafka logs it, if the journal has all its values. Lines with correlation ids or durations are left out,
because a journal does not have these, and so are lines about actions that are not in the journal.

Source: the log statements of the class that a row of `kafka_words.tsv` names, at each release's tag; a row is valid from its
release on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from kcontrol.core.model import RECOVERED, ReplicaAssignment
from kcontrol.core.znodes import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    TOPICS,
    MalformedZnode,
    decode_topic,
    delete_topic_path,
    topic_path,
)
from kcontrol.journal.journal import Record
from kcontrol.views import clock
from kcontrol.views.kafka_broker_words import BrokerWords
from kcontrol.views.kafka_group_words import GroupWords
from kcontrol.views.kafka_isr_words import IsrWords, election
from kcontrol.views.text import clean

NO_LEADERSHIP, NO_LEADERSHIP_LOGGED_SINCE = "it has no leadership", (1, 1)
"""The rule of a replica's transition to Online that Kafka does not log, and the first release that logs it."""

PREFIXES = ("coordinator", "group_manager")
"""The values that each line of a coordinator can have: how the lines of GroupCoordinator and GroupMetadataManager begin."""

TABLE = files("kcontrol.views") / "kafka_words.tsv"
"""One row per kind of line and release that changed it: kind, since, level, logger, message; "" as message is no line."""


@cache
def rows(kind: str) -> tuple[tuple[str, ...], ...]:
    """Return the rows of `kafka_words.tsv` for a kind of log line, such as "partition.new", sorted by first release.

    A row is (first release, level, logger, message); the message "" says that the line exists no longer.
    """
    lines = [line.split("\t") for line in TABLE.read_text().splitlines()[1:]]
    return tuple(tuple(columns) for name, *columns in lines if name == kind)


class LogLine(NamedTuple):
    """A line of a log; `str()` returns the line as in the log file, such as "[<time>] INFO <message> (<logger>)".

    `stamp` is the time in brackets, as `clock.stamp` returns it.
    """

    stamp: str
    level: str
    message: str
    logger: str

    def __str__(self) -> str:
        return f"{self.stamp}{self.level} {self.message} ({self.logger})"


def numbers(release: str) -> tuple[int, ...]:
    """Return a release as numbers that can be compared, such as (2, 8) for "2.8".

    A text without a number becomes (99,), which is later than every release.
    """
    return tuple(map(int, re.findall(r"\d+", release))) or (99,)


def picked(kind: str, release: str) -> tuple[str, ...] | None:
    """Return the (level, logger, message) of a kind of line, such as "partition.new", in a release.

    Return None if the release does not log it, and for an unknown kind.
    """
    at = numbers(release)
    found = [row[1:] for row in rows(kind) if numbers(row[0])[: len(at)] <= at]
    return found[-1] if found and found[-1][-1] else None


class KafkaWords:
    """Converts a journal into Kafka's log lines: `lines`, called for each record in order, returns the record's lines."""

    def __init__(self, release: str, world: str = "simulated") -> None:
        self.release, self.clock, self.recorded = release, clock.of_world(world), world == "recorded"
        self.epochs: dict[int, int] = {}
        self.controllers: set[int] = set()
        self.assigned: dict[str, ReplicaAssignment] = {}
        self.groups, self.brokers, self.isrs = GroupWords(), BrokerWords(), IsrWords()
        self.gone: set[str] = set()  # the topics whose znodes brokers have deleted

    def lines(self, record: Record) -> list[LogLine]:
        r = record.to_json()
        if r.kind == "start":
            self.controllers.discard(r.fields["broker"])
        write = WRITERS.get(r.kind)
        found = list(write(self, r)) if write else []
        more = [*self.brokers.lines(r), *self.isrs.lines(r)]
        found += [line for kind, facts in more for line in self._line(r, kind, **facts)]
        return found + [line for kind, facts in self.groups.lines(r) for line in self._group_line(r, kind, facts)]

    def _group_line(self, r: Record, kind: str, facts: dict[str, Any]) -> Iterator[LogLine]:
        """Yield the log line `kind` of a coordinator, unless the journal lacks a value, or the release does not log the line.

        `facts` has the line's values that the journal has, such as {"member": "anna-1"}.
        """
        if (why := facts.get("reason")) is not None and (row := picked(why, self.release)) is not None:
            facts = facts | {"reason": row[-1].format(**facts)}
        elif why is not None:
            del facts["reason"]
        row = picked(kind, self.release)
        if row is not None and set(re.findall(r"{(\w+)}", row[-1])) <= {*facts, *PREFIXES}:
            yield from self._line(r, kind, **facts)

    def _line(self, r: Record, kind: str, **facts: Any) -> Iterator[LogLine]:
        row = picked(kind, self.release)
        if row is None:
            return
        n, old = facts.get("id", r.id.node), numbers(self.release) < (1, 0)
        epoch = self.epochs.get(n, 0)
        facts |= {
            "id": n, "epoch": epoch,
            "controller": f"Controller {n} epoch {epoch}" if old else f"[Controller id={n} epoch={epoch}]",
            "who": f"[Controller {n}]: " if old else f"[Controller id={n}] ",
            "coordinator": f"[GroupCoordinator {n}]: ",
            "group_manager": f"[Group Metadata Manager on Broker {n}]: " if old else f"[GroupMetadataManager brokerId={n}] ",
            "manager": f"[Topic Deletion Manager {n}]{', ' if numbers(self.release) < (2, 3) else ' '}",
        }  # fmt: skip
        if "tp" in facts:
            facts["dashed"] = facts["tp"]
            if old:
                topic, _, number = facts["tp"].rpartition("-")
                facts["tp"] = f"[{topic},{number}]"
            facts["leader_log"] = f"Partition {facts['tp']} on broker {n}: " if old else f"[Partition {facts['tp']} broker={n}] "
        level, logger, message = row
        yield LogLine(clock.stamp(r.at_ms, self.clock), level, clean(message.format(**facts), 2_000), logger)

    # ---------------------------------------------------------------- the machines

    def _change(self, r: Record) -> Iterator[LogLine]:
        yield from self._move(r, failed=False)

    def _failed_change(self, r: Record) -> Iterator[LogLine]:
        yield from self._move(r, failed=True)

    def _move(self, r: Record, *, failed: bool) -> Iterator[LogLine]:
        f, value = r.fields, r.fields.get("leadership")
        if f.get("rule") == NO_LEADERSHIP and numbers(self.release) < NO_LEADERSHIP_LOGGED_SINCE:
            return
        tp, _, replica = f["subject"].rpartition("@") if f["machine"] == "replica" else (f["subject"], "", "")
        facts = {"tp": tp, "replica": replica, "source": f["source"], "target": f["target"]}
        facts |= {"short_source": _old_name(f["source"]), "short_target": _old_name(f["target"])}
        if failed:
            yield from self._line(r, f"{f['machine']}.failed", **facts)
        elif f["machine"] == "replica":
            if value and f["write"]:
                yield from self._line(r, "replica.out_of_isr", cached=self._value("cached", value), **facts)
                yield from self._line(r, "replica.isr_shrunk", plain=self._value("plain", value), **facts)
            yield from self._line(r, "replica", **facts)
        elif f["target"] == "OnlinePartition":
            if value:
                replicas = self.assigned[tp].replicas if tp in self.assigned else ()
                for kind, found in election(f, self.brokers.live(r.id.node, replicas)):
                    yield from self._line(r, kind, **found)
                yield from self._line(r, "partition.online", leader=value["leader"], value=self._value("value", value), **facts)
        elif f["target"] == "NewPartition":
            if (assigned := self.assigned.get(tp)) is not None:
                yield from self._line(r, "partition.new", replicas=_joined(assigned.replicas), **facts)
        else:
            yield from self._line(r, "partition", **facts)

    def _value(self, kind: str, value: dict[str, Any]) -> str:
        row = picked(kind, self.release)
        states = ", ".join(f"BrokerState(brokerId={b}, brokerEpoch=-1)" for b in value["isr"])
        isr = {"isr": ", ".join(map(str, value["isr"])), "joined": _joined(value["isr"]), "states": states}
        recovery = "RECOVERING" if value.get("leader_recovery_state", RECOVERED) else "RECOVERED"
        return row[-1].format(**value | isr, recovery=recovery) if row else ""

    # ---------------------------------------------------------------- requests

    def _send(self, r: Record) -> Iterator[LogLine]:
        sent = r.fields["requests"]
        leaderships = sent.get("leader_and_isr", {"values": [], "to": {}})
        for broker, places in leaderships["to"].items():
            entries = [leaderships["values"][i] for i in places]
            leads = sum(str(entry["leader"]) == broker for entry in entries)
            yield from self._line(r, "leader_and_isr", broker=broker, leaders=leads, followers=len(entries) - leads)
            for entry in entries:
                yield from self._entry(r, broker, entry)
        metadata = sent.get("update_metadata")
        if metadata and not self.recorded:  # which brokers shared a batch is not recorded
            brokers = ", ".join(map(str, metadata["to"]))
            yield from self._line(r, "update_metadata", brokers=brokers, count=len(metadata["partitions"]))
        for broker, stopped in sent.get("stop_replica", {"to": {}})["to"].items():
            yield from self._line(r, "stop_replica", broker=broker, count=len(stopped))

    def _entry(self, r: Record, broker: str, entry: dict[str, Any]) -> Iterator[LogLine]:
        role = "become-leader" if str(entry["leader"]) == broker else "become-follower"
        facts = {"tp": entry["partition"], "isr": _joined(entry["isr"]), "decided": entry["controller_epoch"]}
        kept = {"leader": entry["leader"], "leader_epoch": entry["leader_epoch"]}
        yield from self._line(r, "leader_and_isr.partition", broker=broker, role=role, **facts, **kept)

    # ---------------------------------------------------------------- the controller

    def _write(self, r: Record) -> Iterator[LogLine]:
        if r.fields["error"] is not None:
            return
        epoch: dict[str, Any] = {}
        for kind, path, text, version, _ in r.fields["ops"]:
            if path == CONTROLLER_EPOCH and kind in ("create", "set"):
                epoch = {"new_epoch": text, "zk_version": version or 0}
            moved = self._note_topic(kind, path, text)
            for tp, assignment in moved.items() if r.id.incarnation > 0 else ():
                lists = {name: ",".join(map(str, ids)) for name, ids in assignment._asdict().items()}
                yield from self._line(r, "assigned", tp=tp, **lists)
                yield from self._line(r, "assigned.triple", tp=tp, **lists)
            if kind == "delete" and r.id.incarnation > 0:
                yield from self._deleted(r, path)
        elected = any(op[0] == "create" and op[1] == CONTROLLER for op in r.fields["ops"])
        by_broker = r.id.incarnation > 0
        if by_broker and elected and (epoch or numbers(self.release) < (2, 1)):
            yield from self._line(r, "elected", **epoch)
        if by_broker and epoch and epoch["new_epoch"] != "0":
            yield from self._line(r, "epoch", **epoch)

    def _deleted(self, r: Record, path: str) -> Iterator[LogLine]:
        """Yield the line about a completed deletion of a topic; `path` is a path that the journal record `r` deletes.

        A deletion is complete if `path` is below /admin/delete_topics, and the topic's znode is deleted already.
        """
        topic = path.rpartition("/")[2]
        if path == topic_path(topic):
            self.gone.add(topic)
        elif path == delete_topic_path(topic) and topic in self.gone:
            self.gone.discard(topic)
            yield from self._line(r, "deleted", topic=topic)

    def _note_topic(self, kind: str, path: str, text: str) -> dict[str, ReplicaAssignment]:
        """Store the assignments in a topic znode; return the partitions whose assignment has changed, with the new assignment.

        `kind` is "create", "set" or "delete"; `text` is the data that is written to the znode `path`.
        """
        topic = path.removeprefix(f"{TOPICS}/")
        # No topic znode, or no new data.
        if topic == path or "/" in topic or kind not in ("create", "set"):
            return {}
        try:
            assigned = decode_topic(text.encode()).partitions
        except MalformedZnode:
            return {}
        found = {f"{topic}-{number}": assignment for number, assignment in assigned.items()}
        moved = {tp: assignment for tp, assignment in found.items() if self.assigned.get(tp, assignment) != assignment}
        self.assigned |= found
        return moved

    def _update(self, r: Record) -> Iterator[LogLine]:
        f, n = r.fields, r.id.node
        if f["context"] != "controller":
            return
        if f["field"] == "controller_epoch":
            self.epochs[n] = f["put"]
        elif f["field"] == "active_controller_id":
            if n in self.controllers and f["put"] != n:
                yield from self._line(r, "resigning")
            (self.controllers.add if f["put"] == n else self.controllers.discard)(n)


WRITERS: dict[str, Callable[[KafkaWords, Record], Iterator[LogLine]]] = {
    "change": KafkaWords._change,
    "failed_change": KafkaWords._failed_change,
    "send": KafkaWords._send,
    "write": KafkaWords._write,
    "update": KafkaWords._update,
}


def in_kafkas_words(records: Iterable[Record], *, dated: bool = False) -> Iterator[list[LogLine]]:
    """Yield, for each journal record, the lines that the run's release of Kafka logs; most records have none.

    With `dated`, each line begins with a date and a time, also in a run with virtual times.
    """
    words = KafkaWords("")
    for record in records:
        if record.kind == "run":
            words = KafkaWords(str(record.fields["release"]), str(record.fields.get("world", "simulated")))
            words.clock = "wall" if dated else words.clock
        yield words.lines(record)


def _joined(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _old_name(state: str) -> str:
    """Return the name that 0.8.0 logs for the state of a partition: without "Partition", and `NotExists` for `NonExistent`."""
    return state.removesuffix("Partition").replace("NonExistent", "NotExists")
