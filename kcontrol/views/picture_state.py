"""The part of the cluster's state that pictures need and `journal.fold` lacks, such as partitions and sessions.

The browser gets this part, and the state of `journal.fold`, as lists of changes: one list per journal record.
"""

from typing import Any

from kcontrol.core.znodes import CONTROLLER, CONTROLLER_EPOCH, TOPICS, parent, parse_state_path
from kcontrol.journal.fold import Fold
from kcontrol.journal.journal import Record
from kcontrol.journal.state_changes import Changes
from kcontrol.views import folded_state


class Seen(Changes):
    """The state that pictures need and `journal.fold` lacks, such as open sessions and the leader and ISR of each partition."""

    def __init__(self) -> None:
        # partitions: name to fields of `folded_state.Partition`; sessions: id to [broker, whether its process runs]; czxid,
        # mzxid: path to zxid; moves: state machine to the record of its last transition; taken: "sender>receiver" of requests
        # without a response; cuts: broker to partition to the last truncation; lost: partition to its `record_lost` records.
        parts = ("partitions", "sessions", "czxid", "mzxid", "moves", "taken", "cuts", "lost")
        # controller: [broker, controller epoch] of the broker that /controller names, None without such a broker.
        super().__init__({part: {} for part in parts} | {"controller": None})
        self._znodes: dict[str, Any] = {}  # below /brokers/topics
        self._numbers: dict[str, set[int]] = {}  # the partitions of each topic

    def add(self, record: Record, fold: Fold) -> None:
        """By the next record, after which `fold` has the state and its changes; `self.noted` has the changes to this state."""
        self.noted = []
        self._note(record)
        zxid = record.fields.get("zxid")
        for op, path, value in fold.noted:
            if path[0] == "nodes" or path[-1] in {CONTROLLER, CONTROLLER_EPOCH}:
                self._controller(folded_state.controller(fold.state))
            if path[0] == "znodes":
                if zxid is not None:
                    self._zxid(zxid, path[1], op == "drop")
                if path[1].startswith(f"{TOPICS}/"):
                    self._topic_znode(path[1], None if op == "drop" else value)

    def _controller(self, named: tuple[int, int] | None) -> None:
        """Store `named`, (broker, controller epoch) of the broker that `/controller` names, or None, in the viewer's state."""
        if (value := list(named) if named else None) != self.state["controller"]:
            self.put(value, "controller")

    def _topic_znode(self, path: str, value: Any) -> None:
        """Update `partitions` after a change of the znode `path`, a topic's znode or a partition's state znode."""
        if value is None:
            self._znodes.pop(path, None)
        else:
            self._znodes[path] = value
        if tp := parse_state_path(path):
            if tp.partition in self._numbers.get(tp.topic, ()):
                self._partition(folded_state.partition(tp.topic, tp.partition, self._replicas(str(tp)), self._znodes))
        elif parent(path) == TOPICS:
            topic = path[len(TOPICS) + 1 :]
            found = {p.number: p for p in folded_state.partitions_of(topic, self._znodes)}
            for number in self._numbers.get(topic, set()) - set(found):
                self.drop("partitions", f"{topic}-{number}")
            self._numbers[topic] = set(found)
            for partition in found.values():
                self._partition(partition)

    def _replicas(self, name: str) -> tuple[int, ...]:
        return tuple(self.state["partitions"][name]["replicas"])

    def _partition(self, partition: folded_state.Partition) -> None:
        """Only fields that have changed, which go to `noted`, the changes for the browser."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in partition._asdict().items()}
        known = self.need({}, "partitions", partition.name)
        if changed := {name: value for name, value in values.items() if name not in known or known[name] != value}:
            self.update(changed, "partitions", partition.name)

    def _zxid(self, zxid: int, path: str, is_gone: bool) -> None:
        if is_gone:
            self._forget("czxid", path)
            self._forget("mzxid", path)
            return
        if path not in self.state["czxid"]:
            self.put(zxid, "czxid", path)
        self.put(zxid, "mzxid", path)

    def _forget(self, *path: str) -> None:
        if path[-1] in self._at(path[:-1]):
            self.drop(*path)

    def _note(self, r: Record) -> None:
        """What a record says by its kind alone, such as that a session is open."""
        f, node = r.fields, r.id.node
        match r.kind:
            case "open":
                self.put([node, True], "sessions", session_name(f["session"]))
            case "close":
                self._forget("sessions", session_name(f["session"]))
            case "stop":
                self._stop(f["broker"])
            case "receive":
                self.put(True, "taken", f"{f['sender']}>{node}")
            case "response":
                self._forget("taken", f["channel"])
            case "close_channels":
                for receiver in f["to"]:
                    self._forget("taken", f"{node}>{receiver}")
            case "change":
                self.put(str(r.id), "moves", f["machine"])
            case "log_append" | "log_delete":
                if f["partition"] in self.need({}, "cuts", str(node)):
                    self.drop("cuts", str(node), f["partition"])
            case "log_truncate" | "tail_lost":
                broker = str(f.get("broker", node))
                self.need({}, "cuts", broker)
                self.put([str(r.id), f["offset"], f["removed"]], "cuts", broker, f["partition"])
            case "record_lost":
                self.need([], "lost", f["partition"])
                self.push(f, "lost", f["partition"])

    def _stop(self, broker: int) -> None:
        for session in [name for name, (owner, _) in self.state["sessions"].items() if owner == broker]:
            self.put([broker, False], "sessions", session)
        for pair in [pair for pair in self.state["taken"] if str(broker) in pair.split(">")]:
            self.drop("taken", pair)


def session_name(session: Any) -> str:
    """As ZooKeeper's shell prints it, "0x1000a"; JavaScript's numbers are too short for it."""
    return f"0x{session & 0xFFFF_FFFF_FFFF_FFFF:x}"
