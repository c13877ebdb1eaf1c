"""The state of a cluster, as far as log lines show it: running processes, znodes, leaderships; and its journal.

Each journal record has the field `line`, the file and the number of the line that shows the record. A record that no line shows
has the field `inferred` with the value "record"; if only some of its values are inferred, `inferred` has their names, such as
"isr, leader_epoch", or "time". Log lines seldom have session ids, zxids and znode versions: then the journal's values count the
sessions, transactions and writes that the journal has.
"""

from collections import Counter
from typing import Any

from kcontrol.core.model import LeaderAndIsr, TopicPartition
from kcontrol.core.znodes import broker_path, encode, encode_state, partitions_path, state_path, topic_path
from kcontrol.journal.journal import OUTSIDE, Record, RecordId
from kcontrol.journal.record_fields import INFERRED
from kcontrol.pipeline.log_journal.log_line import Line

RECORD, TIME = INFERRED
NOT_KNOWN = "the log does not say why"
Leadership = dict[str, Any]
Changing = tuple[list[int], list[int]]
"""The replicas that a reassignment adds to a partition and removes from it."""
Write = tuple[str, str, bool]
"""A path, its new content, and whether the znode is ephemeral."""


class Records:
    """The records of a growing journal: `add` adds a record, `taken` returns the new records.

    A record's id is (broker, number of the broker's process, number of the record in this process).
    """

    def __init__(self) -> None:
        self._new: list[Record] = []
        self._last: Counter[tuple[int, int]] = Counter()

    def add(self, node: int, incarnation: int, kind: str, cause: RecordId | None, at_ms: int, fields: dict[str, Any]) -> RecordId:
        """Add a record to the journal that is made from broker logs, and return the record's id.

        The record gets the next number in its process: the process number `incarnation` of the broker `node`. `cause` is the id
        of the record that caused it.
        """
        self._last[node, incarnation] += 1
        id = RecordId(node, incarnation, self._last[node, incarnation])
        self._new.append(Record(id, kind, cause, at_ms, fields))
        return id

    def taken(self) -> list[Record]:
        """Return the records that were added since the last call; the next call does not return these records again."""
        found, self._new = self._new, []
        return found


class Memory:
    """The state of a cluster after the log lines so far; methods change this state and add journal records.

    Args:
        cause: in each method, the id of the record that causes the new record; None if no cause is known.
        inferred: in each method, the names of the new record's values that no log line has, such as "time"; "record" if no
            log line shows the record, None if log lines have all values.
    """

    def __init__(self, records: Records) -> None:
        self.records, self.line = records, Line("", 0, 0, "", {}, None)
        self.alive: set[int] = set()
        self.leaving: set[int] = set()  # brokers in a controlled shutdown
        self.incarnations: dict[int, int] = {}
        self.versions: dict[str, int] = {}
        self.owners: dict[str, int] = {}  # ephemeral znode -> its broker
        self.leaderships: dict[str, Leadership] = {}
        self.assigned: dict[str, list[int]] = {}
        self.changing: dict[str, Changing] = {}
        self.sessions = self.zxid = 0

    def note(self, by: int | None, kind: str, cause: RecordId | None, inferred: str | None = None, **fields: Any) -> RecordId:
        """Add a record of `kind`, such as "write", by the broker `by` (None: no broker) about the latest log line; return its id.

        `inferred` names the values that no log line has, such as "isr, leader_epoch"; "record" means all values, None no value.
        """
        # The record also has the file and the number of this line.
        node, incarnation = (OUTSIDE, 0) if by is None else (by, self.incarnations[by])
        mark = {"inferred": inferred} if inferred else {}
        return self.records.add(node, incarnation, kind, cause, self.line.at_ms, fields | {"line": self.line.place} | mark)

    # ---------------------------------------------------------------- processes

    def start(self, broker: int, inferred: str | None) -> RecordId:
        """`inferred`: "record" if no line shows the start, "time" if only its time is inferred."""
        self.incarnations[broker] = self.incarnations.get(broker, 0) + 1
        self.alive.add(broker)
        return self.note(None, "start", None, inferred, broker=broker, incarnation=self.incarnations[broker])

    def ends(self, broker: int) -> int:
        """Return how many processes of a broker have ended."""
        return self.incarnations.get(broker, 0) - (broker in self.alive)

    def ensure_running(self, broker: int) -> None:
        """Record that a broker has started and registered, if it is not known to run."""
        if broker not in self.alive:
            self.register(broker, self.start(broker, RECORD), RECORD)

    def has_ended(self, broker: int) -> bool:
        """Return whether a broker has run before and does not run now; False for a broker that no line has named."""
        return broker in self.incarnations and broker not in self.alive

    def register(self, broker: int, cause: RecordId | None, inferred: str | None) -> None:
        """Without host and port; nothing happens for a registered broker."""
        if broker_path(broker) not in self.versions:
            content = encode({"jmx_port": -1, "timestamp": "0", "host": "", "version": 1, "port": -1}).decode()
            self.write(broker, cause, inferred, (broker_path(broker), content, True))

    def stop(self, broker: int, exit_code: int | None, inferred: str | None) -> RecordId:
        """Record the end of a broker's process, then of its session and ephemeral znodes; return the first record's id.

        `exit_code` None means unknown. `inferred` is "record" if no log line shows the end, else None.
        """
        record = self.note(None, "stop", None, inferred, broker=broker, exit_code=exit_code)
        self.alive.discard(broker)
        self.leaving.discard(broker)
        deleted = sorted(path for path, owner in self.owners.items() if owner == broker)
        for path in deleted:
            del self.versions[path], self.owners[path]
        self.zxid += 1
        session = self.incarnations[broker]
        self.note(None, "close", record, RECORD, broker=broker, session=session, deleted=deleted, zxid=self.zxid)
        return record

    # ---------------------------------------------------------------- znodes

    def write(self, by: int | None, cause: RecordId | None, inferred: str | None, *writes: Write) -> RecordId:
        """Record a transaction of the broker `by` (None: a client) that creates or sets znodes; return the record's id.

        Each of `writes` is (path, content, is ephemeral). `inferred` names values that no log line has; "record" means all.
        """
        ops = []
        for path, text, ephemeral in writes:
            kind = "set" if path in self.versions else "create"
            self.versions[path] = self.versions.get(path, -1) + 1
            if ephemeral and by is not None:
                self.owners[path] = by
            ops.append([kind, path, text, self.versions[path], ephemeral])
        return self._transaction(by, cause, inferred, ops)

    def delete(self, by: int | None, cause: RecordId | None, inferred: str | None, *paths: str) -> RecordId | None:
        """Record a transaction of the broker `by` (None: a client) that deletes existing `paths`; return its record's id.

        Return None if no path exists. `inferred` is "record" if the whole record is inferred, else None.
        """
        ops = [["delete", path, "", None, False] for path in paths if path in self.versions]
        for _, path, *_ in ops:
            del self.versions[str(path)]
            self.owners.pop(str(path), None)
        return self._transaction(by, cause, inferred, ops) if ops else None

    def _transaction(self, by: int | None, cause: RecordId | None, inferred: str | None, ops: list[list[Any]]) -> RecordId:
        self.zxid += 1
        return self.note(by, "write", cause, inferred, ops=ops, zxid=self.zxid, error=None, epoch_zk_version=-1)

    def assign(self, assigned: dict[str, list[int]], inferred: str | None, changing: dict[str, Changing] | None = None) -> None:
        """Record new assignments, such as {"t-0": [1, 2]}; `changing` maps a partition to (added replicas, removed replicas).

        `inferred`: "record" if the whole record is inferred, "target" if only the reassignment's final replicas are, else None.
        """
        # In `changing` the replicas are those that a reassignment adds and removes; ([], []) ends the reassignment.
        changing = changing or {}
        new = {tp: replicas for tp, replicas in assigned.items() if self.assigned.get(tp) != replicas or tp in changing}
        self.assigned |= new
        self.changing = {tp: moves for tp, moves in (self.changing | changing).items() if any(moves)}
        for topic in dict.fromkeys(tp.rpartition("-")[0] for tp in new):
            content = {"version": 1, "partitions": self._numbered(self.assigned, topic)}
            for place, name in enumerate(("adding_replicas", "removing_replicas")):
                moves = self._numbered({tp: moves[place] for tp, moves in self.changing.items()}, topic)
                content |= {"version": 3, name: moves} if self.changing else {}
            self.write(None, None, inferred, (topic_path(topic), encode(content).decode(), False))

    @staticmethod
    def _numbered(found: dict[str, list[int]], topic: str) -> dict[str, list[int]]:
        """By partition number: {"0": [1, 2], "1": [2, 1]}."""
        known = {tp.rpartition("-")[2]: ids for tp, ids in found.items() if tp.rpartition("-")[0] == topic}
        return dict(sorted(known.items(), key=lambda item: int(item[0])))

    def set_leadership(
        self, partition: str, leadership: Leadership, by: int | None, cause: RecordId | None, inferred: str | None
    ) -> None:
        """A write without a transition, such as a smaller ISR by the leader `by`."""
        self.leaderships[partition] = leadership
        path = state_path(TopicPartition.parse(partition))
        self.write(by, cause, inferred, (path, encode_state(LeaderAndIsr.from_json(leadership)).decode(), False))

    def forget_topic(self, topic: str, by: int | None, cause: RecordId | None, inferred: str | None, *more: str) -> None:
        """Record the transaction of the broker `by` (None: a client) that deletes a topic's znodes and the paths `more`.

        `inferred` is "record" if the whole record is inferred, else None.
        """
        # `more` has the znode of the deletion request.
        gone = [tp for tp in {*self.assigned, *self.leaderships} if tp.rpartition("-")[0] == topic]
        states = sorted(state_path(TopicPartition.parse(tp)) for tp in gone)
        self.delete(by, cause, inferred, *states, partitions_path(topic), topic_path(topic), *more)
        for tp in gone:
            self.assigned.pop(tp, None)
            self.changing.pop(tp, None)
            self.leaderships.pop(tp, None)
