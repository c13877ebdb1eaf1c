"""Functions that convert a journal into the lines of state-change.log, controller.log and server.log that a Kafka release writes.

The lines of group coordinators are in `kafka_group_words.py`, the texts in the table `kafka_logs/log_lines.tsv`.

A line is written where Kafka logs it, if the journal has all its values. Lines with correlation ids or durations are left out,
because a journal does not have these, and so are lines about actions that are not in the journal.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

from kcontrol.core import znodes as zk
from kcontrol.core.model import RECOVERED, ReplicaAssignment
from kcontrol.journal.journal import Record
from kcontrol.kafka_logs.log_lines import text, written
from kcontrol.kafka_logs.templates import numbers
from kcontrol.views import clock
from kcontrol.views.kafka_broker_words import BrokerWords
from kcontrol.views.kafka_group_words import GroupWords
from kcontrol.views.text import clean

NO_LEADERSHIP, NO_LEADERSHIP_LOGGED_SINCE = "it has no leadership", (1, 1)
"""The rule of a replica's transition to Online that Kafka does not log, and the first release that logs it."""


class LogLine(NamedTuple):
    """A line of a log; `str()` returns the line as in the log file, such as "[<time>] INFO <message> (<logger>)"."""

    # The time in brackets, as `clock.stamp` returns it.
    stamp: str
    level: str
    message: str
    logger: str
    # The log that has the line, such as "controller.log".
    file: str

    def __str__(self) -> str:
        return f"{self.stamp}{self.level} {self.message} ({self.logger})"


class IsrWords:
    """Finds, record by record, the lines that leaders log about their changes of ISRs.

    Source: Partition.expandIsr, shrinkIsr and updateIsr (0.8.0 to 3.9).
    """

    def __init__(self) -> None:
        self._pending: dict[tuple[int, str], dict[str, Any]] = {}  # leader, partition -> the leadership before its change

    def lines(self, r: Record) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (kind, values), such as ("isr_shrunk", {...}), for each line that Kafka logs at `r`, the next journal record."""
        f = r.fields
        if r.kind == "start":
            self._pending = {key: value for key, value in self._pending.items() if key[0] != f["broker"]}
        elif r.kind == "update" and (f["context"], f["field"]) == ("broker", "hosted"):
            for tp, held in (f["put"] or {}).items():
                yield from self._hosted(r.id.node, tp, held)
        elif r.kind == "write" and f["error"] is not None:
            for _, path, *_ in f["ops"]:
                before = self._pending.get((r.id.node, str(zk.parse_state_path(path))))
                if before is not None:
                    yield "isr_update_stale", {"tp": str(zk.parse_state_path(path)), "zk_version": before["zk_version"]}

    def _hosted(self, broker: int, tp: str, held: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the line that the leader `broker` writes to Kafka's log when it begins or ends a change of the ISR of `tp`.

        Yield nothing otherwise. `held` has the leadership and the pending ISR in the broker's memory after the journal record.
        """
        now, asked, key = held["leadership"], held["pending_isr"], (broker, tp)
        if asked:
            kind = "isr_expanded" if len(asked) > len(now["isr"]) else "isr_shrunk"
            self._pending[key] = now
            yield kind, {"tp": tp, "isr_from": now["isr"], "isr_to": asked}
        elif (before := self._pending.pop(key, None)) is not None and before["zk_version"] != now["zk_version"]:
            yield "isr_updated", {"tp": tp, "isr": now["isr"], "zk_version": now["zk_version"]}


def election(f: dict[str, Any], live: Collection[int]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The lines about an offline partition's election, such as ("clean_election", {...}); `live` are its live replicas.

    Source: OfflinePartitionLeaderSelector.selectLeader (0.8.0 to 1.0).
    """
    chosen, rule = f["leadership"], f.get("rule")
    if f["source"] != "OfflinePartition" or rule not in ("offline", "unclean"):
        return
    found = {"tp": f["subject"], "leader": chosen["leader"], "isr": chosen["isr"]}
    yield ("clean_election", found) if rule == "offline" else ("unclean_election", found | {"live": live})
    yield "leader_selected", found | {"leader_epoch": chosen["leader_epoch"]}


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
        more = [*self.brokers.lines(r), *self.isrs.lines(r), *self.groups.lines(r)]
        return found + [line for kind, facts in more for line in self._line(r, kind, **facts)]

    def _line(self, r: Record, kind: str, **facts: Any) -> Iterator[LogLine]:
        """Yield the line, unless the release does not log it, or the journal lacks one of its facts."""
        n = r.id.node
        if "tp" in facts:
            facts["topic"], _, facts["partition"] = facts.pop("tp").rpartition("-")
        for name in ("state", "reason"):
            if isinstance(facts.get(name), tuple):
                part, values = facts.pop(name)
                value = text(f"{name}.{part}", self.release, values)
                facts |= {} if value is None else {name: value}
        found = written(kind, self.release, {"controller": n, "broker": n, "epoch": self.epochs.get(n, 0)} | facts)
        if found is not None:
            stamp = clock.stamp(r.at_ms, self.clock)
            yield LogLine(stamp, found.level, clean(found.message, 2_000), found.logger, found.file)

    # ---------------------------------------------------------------- the machines

    def _move(self, r: Record) -> Iterator[LogLine]:
        f, value = r.fields, r.fields.get("leadership")
        if f.get("rule") == NO_LEADERSHIP and numbers(self.release) < NO_LEADERSHIP_LOGGED_SINCE:
            return
        tp, _, replica = f["subject"].rpartition("@") if f["machine"] == "replica" else (f["subject"], "", "")
        facts = {"tp": tp, "from_state": f["source"], "to_state": f["target"]} | ({"replica": replica} if replica else {})
        if r.kind == "failed_change":
            yield from self._line(r, f"{f['machine']}_transition_failed", **facts)
        elif f["machine"] == "replica":
            if value and f["write"]:
                yield from self._line(r, "isr_removed_on_offline", **facts, **_leadership(value))
                yield from self._line(r, "leader_isr_new", **facts, **_leadership(value))
            yield from self._line(r, "replica_transition", **facts)
        elif f["target"] == "OnlinePartition":
            if value:
                replicas = self.assigned[tp].replicas if tp in self.assigned else ()
                for kind, found in election(f, self.brokers.live(r.id.node, replicas)):
                    yield from self._line(r, kind, **found)
                state = ("full", _leadership(value))
                yield from self._line(r, "partition_transition", leader=value["leader"], state=state, **facts)
        elif f["target"] == "NewPartition":
            if (assigned := self.assigned.get(tp)) is not None:
                yield from self._line(r, "partition_transition", replicas=assigned.replicas, **facts)
        else:
            yield from self._line(r, "partition_transition", **facts)

    # ---------------------------------------------------------------- requests

    def _send(self, r: Record) -> Iterator[LogLine]:
        sent = r.fields["requests"]
        leaderships = sent.get("leader_and_isr", {"values": [], "to": {}})
        for broker, places in leaderships["to"].items():
            entries = [leaderships["values"][i] for i in places]
            leads = sum(str(entry["leader"]) == broker for entry in entries)
            yield from self._line(
                r, "leader_and_isr_sent_batch", to_broker=broker, n_leaders=leads, n_followers=len(entries) - leads
            )
            for entry in entries:
                yield from self._entry(r, broker, entry)
        metadata = sent.get("update_metadata")
        if metadata and not self.recorded:  # which brokers shared a batch is not recorded
            yield from self._line(r, "update_metadata_sent_batch", to_brokers=metadata["to"], n=len(metadata["partitions"]))
        for broker, stopped in sent.get("stop_replica", {"to": {}})["to"].items():
            yield from self._line(r, "stop_replica_sent_batch", to_broker=broker, n=len(stopped))

    def _entry(self, r: Record, broker: str, entry: dict[str, Any]) -> Iterator[LogLine]:
        role = "become-leader" if str(entry["leader"]) == broker else "become-follower"
        state = ("cached", _leadership(entry))
        yield from self._line(r, "leader_and_isr_sent", tp=entry["partition"], to_broker=broker, role=role, state=state)

    # ---------------------------------------------------------------- the controller

    def _write(self, r: Record) -> Iterator[LogLine]:
        if r.fields["error"] is not None:
            return
        epoch: dict[str, Any] = {}
        for kind, path, content, version, _ in r.fields["ops"]:
            if path == zk.CONTROLLER_EPOCH and kind in ("create", "set"):
                epoch = {"epoch": content, "zk_version": version or 0}
            moved = self._note_topic(kind, path, content)
            for tp, assignment in moved.items() if r.id.incarnation > 0 else ():
                yield from self._line(r, "reassign_assignment_updated", tp=tp, replicas=assignment.replicas)
                yield from self._line(r, "reassign_updated", tp=tp, assignment=_replica_assignment(assignment))
            if kind == "delete" and r.id.incarnation > 0:
                yield from self._deleted(r, path)
        elected = any(op[0] == "create" and op[1] == zk.CONTROLLER for op in r.fields["ops"])
        by_broker = r.id.incarnation > 0
        if by_broker and elected and (epoch or numbers(self.release) < (2, 1)):
            yield from self._line(r, "controller_elected", **epoch)
        if by_broker and epoch and epoch["epoch"] != "0":
            yield from self._line(r, "controller_epoch", **epoch)

    def _deleted(self, r: Record, path: str) -> Iterator[LogLine]:
        """A deletion is complete when its znode is deleted after that of the topic."""
        topic = path.rpartition("/")[2]
        if path == zk.topic_path(topic):
            self.gone.add(topic)
        elif path == zk.delete_topic_path(topic) and topic in self.gone:
            self.gone.discard(topic)
            yield from self._line(r, "deletion_completed", topics=[topic])

    def _note_topic(self, kind: str, path: str, content: str) -> dict[str, ReplicaAssignment]:
        """Store the assignments in a topic znode; return the partitions whose assignment has changed, with the new assignment."""
        topic = path.removeprefix(f"{zk.TOPICS}/")
        # No topic znode, or no new data.
        if topic == path or "/" in topic or kind not in ("create", "set"):
            return {}
        try:
            assigned = zk.decode_topic(content.encode()).partitions
        except zk.MalformedZnode:
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
                yield from self._line(r, "controller_resigning")
            (self.controllers.add if f["put"] == n else self.controllers.discard)(n)


WRITERS: dict[str, Callable[[KafkaWords, Record], Iterator[LogLine]]] = {
    "change": KafkaWords._move,
    "failed_change": KafkaWords._move,
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


def _leadership(value: dict[str, Any]) -> dict[str, Any]:
    """Return the facts that a line has of a leader, ISR and epochs."""
    recovery = "RECOVERING" if value.get("leader_recovery_state", RECOVERED) else "RECOVERED"
    return value | {"state_epoch": value.get("controller_epoch"), "recovery": recovery}


def _replica_assignment(assignment: ReplicaAssignment) -> str:
    """Return what Scala prints for a ReplicaAssignment."""
    replicas, adding, removing = (",".join(map(str, ids)) for ids in assignment)
    return f"ReplicaAssignment(replicas={replicas}, addingReplicas={adding}, removingReplicas={removing})"
