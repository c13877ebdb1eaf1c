"""Computes the values of the lines that brokers log about processes and registrations: started, shut down, brokers changed.

The texts are rows of `kafka_logs/log_lines.tsv`.

Source: KafkaServer.startup and shutdown, ReplicaStateMachine.BrokerChangeListener (0.8.0 to 0.10.2), KafkaController.BrokerChange
and initializeControllerContext, TopicDeletion (0.11 to 3.9), PartitionStateMachine.DeleteTopicsListener (0.8.1 to 0.10.2).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from kcontrol.core.znodes import BROKER_IDS
from kcontrol.journal.journal import Record

Line = tuple[str, dict[str, Any]]
"""The kind of a line in `log_lines.tsv`, and its facts."""


class BrokerWords:
    """Finds, record by record, the lines that Kafka logs about processes and registrations of brokers."""

    def __init__(self) -> None:
        self._registered: dict[int, int] = {}  # broker -> zxid of its registration
        self._known: dict[int, dict[int, int]] = defaultdict(dict)  # controller -> broker -> broker epoch
        self._leaving: dict[int, set[int]] = defaultdict(set)  # controller -> brokers in a controlled shutdown
        self._events: dict[tuple[int, ...], str] = {}  # the begin of a handler -> its event

    def lines(self, r: Record) -> Iterator[Line]:
        """Yield each line that Kafka logs at `r`, the next journal record, whose fields have JSON's types."""
        f = r.fields
        if r.kind == "begin":
            self._events[r.id] = f["event"]
        elif r.kind == "write" and f["error"] is None:
            yield from self._write(r)
        elif r.kind == "close":
            for broker in _brokers(f["deleted"]):
                self._registered.pop(broker, None)
        elif r.kind == "stop" and f["exit_code"] == 0:
            yield "broker_stopped", {"broker": f["broker"]}
        elif r.kind == "read" and self._is_in(r, "BrokerChange") and (f["how"], f["paths"]) == ("children", [BROKER_IDS]):
            yield "brokers_changed", self._changed(r.id.node)
        elif r.kind == "update" and f["context"] == "controller":
            yield from self._update(r)

    def live(self, controller: int, replicas: Iterable[int]) -> list[int]:
        """Return the brokers in `replicas` that the broker `controller` knows as live and not in a controlled shutdown."""
        return [b for b in replicas if b in self._known[controller] and b not in self._leaving[controller]]

    def _is_in(self, r: Record, event: str) -> bool:
        return r.cause is not None and self._events.get(r.cause) == event

    def _write(self, r: Record) -> Iterator[Line]:
        for kind, path, *_ in r.fields["ops"]:
            for broker in _brokers([path]):
                if kind == "delete":
                    self._registered.pop(broker, None)
                elif kind == "create":
                    self._registered[broker] = r.fields["zxid"]
                    yield from [("broker_started", {"broker": broker})] if broker == r.id.broker else ()

    def _changed(self, controller: int) -> dict[str, Any]:
        """The brokers registered now against those that `controller` knows: `added`, `deleted`, `bounced` and `live`."""
        now, known = self._registered, self._known[controller]
        bounced = [b for b in now if b in known and 0 <= known[b] < now[b]]
        found = {"added": now.keys() - known, "deleted": known.keys() - now, "bounced": bounced, "live": now}
        return {name: sorted(brokers) for name, brokers in found.items()}

    def _update(self, r: Record) -> Iterator[Line]:
        f = r.fields
        if f["field"] == "live_broker_epochs":
            known = self._known[r.id.node]
            kept = {} if f["clear"] else {broker: epoch for broker, epoch in known.items() if broker not in f["remove"]}
            self._known[r.id.node] = kept | {int(broker): epoch for broker, epoch in (f["put"] or {}).items()}
            if f["clear"] and not self._is_in(r, "BrokerChange"):
                yield "live_brokers", {"live": sorted(self._known[r.id.node])}
        elif f["field"] == "shutting_down_broker_ids":
            leaving = set() if f["clear"] else self._leaving[r.id.node] - {*f["remove"]}
            for broker in f["put"] or ():
                yield "broker_shutting_down", {"broker": broker}
            self._leaving[r.id.node] = leaving | {*(f["put"] or ())}
        elif f["field"] == "topics_to_be_deleted" and f["put"] and self._is_in(r, "TopicDeletion"):
            yield "deletion_requested", {"topics": f["put"]}


def _brokers(paths: Iterable[str]) -> Iterator[int]:
    """Yield the broker id of each path of a registration, such as 1 for "/brokers/ids/1"; skip all other paths."""
    for path in paths:
        parent, _, name = path.rpartition("/")
        if parent == BROKER_IDS:
            yield int(name)
