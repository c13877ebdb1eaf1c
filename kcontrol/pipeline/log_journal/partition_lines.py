"""Reads the lines about partitions and replicas: transitions, leaders, ISRs, assignments and deletions.

A line says the whole leadership only from 1.1 on. Up to 1.0 the line of a transition to OnlinePartition has the leader alone; the
ISR and the leader epoch come from another line about the same election, before it ("Selected new leader and ISR") or after it (a
LeaderAndIsr request). Without such a line they are inferred as the controller computes them: an ISR without the brokers that do
not run, and a leader epoch higher by 1.
"""

from collections import defaultdict, deque
from typing import Any

from kcontrol.controller.partition_machine import PARTITION_TRANSITIONS
from kcontrol.controller.replica_machine import REPLICA_TRANSITIONS
from kcontrol.core.model import TopicPartition
from kcontrol.core.znodes import delete_topic_path, state_path
from kcontrol.journal.journal import RecordId
from kcontrol.pipeline.log_journal.election_lines import NEW, OFFLINE, ONLINE, SHUTDOWN, ElectionLines
from kcontrol.pipeline.log_journal.log_line import MOVES, Line, state_name
from kcontrol.pipeline.log_journal.memory import NOT_KNOWN, RECORD, Leadership, Memory
from kcontrol.pipeline.log_journal.processes import Processes
from kcontrol.pipeline.log_journal.unlogged import GONE_REPLICA, NEW_REPLICA, OFFLINE_REPLICA, ONLINE_REPLICA, Unlogged

GONE = "NonExistentPartition"
DELETED = "ReplicaDeletionStarted"


class PartitionLines:
    """The partitions and replicas of a cluster, as the broker logs describe them up to the latest line that was read.

    Each public method reads one line, and adds the records that follow from it to the journal of `memory`.
    """

    def __init__(self, memory: Memory, processes: Processes, release: str) -> None:
        self.memory, self.processes, self.elections = memory, processes, ElectionLines(memory)
        tables = {"partition": PARTITION_TRANSITIONS.for_(release), "replica": REPLICA_TRANSITIONS.for_(release)}
        self._legal = {machine: {(str(row.source), str(row.target)) for row in rows} for machine, rows in tables.items()}
        self._release, self.unlogged = release, Unlogged(memory, processes, release)
        self._states: dict[tuple[int, int, str], tuple[str, str]] = {}  # controller, epoch, subject -> state, place of its line
        self._smaller: dict[str, deque[Leadership]] = defaultdict(deque)  # partition -> ISRs of transitions still to come
        self._taken: set[tuple[int, str]] = set()  # file positions of lines that are part of an earlier record
        self._deleting: set[str] = set()
        self._retired: dict[str, set[str]] = defaultdict(set)  # topic -> its replicas that are NonExistentReplica

    # ---------------------------------------------------------------- transitions

    def moved(self, line: Line) -> None:
        """Read the log line about a transition of a partition or replica in a controller's memory; record the transition."""
        if (line.n, line.file) in self._taken:
            self._taken.discard((line.n, line.file))
            return
        machine, subject = MOVES[line.kind], line.subject
        target, controller, epoch = state_name(line.facts["to_state"]), line.facts["controller"], line.facts["epoch"]
        self.processes.speaks(controller, epoch)
        former = self._states.get((controller, epoch, subject))
        named = self.unlogged.named_source(line, target)
        inferred = [] if named else ["source"]
        source = state_name(named) if named else former[0] if former else self.unlogged.first_state(line, target)
        if machine == "partition":
            self._partition(line, source, target, inferred)
            return
        waiting = self._smaller[line.partition] if target == OFFLINE_REPLICA else None
        smaller = waiting.popleft() if waiting else None
        if target == OFFLINE_REPLICA and smaller is None and (smaller := self.unlogged.smaller_isr(line)) is not None:
            inferred += ["write", "leader", "isr", "leader_epoch"]
        self._replica(line, source, target, inferred, smaller)

    def _partition(self, line: Line, source: str, target: str, inferred: list[str]) -> None:
        tp, memory = line.partition, self.memory
        if target == NEW:
            memory.assign({tp: line.facts.get("replicas") or memory.assigned.get(tp, [])}, RECORD)
        elif target == OFFLINE and source == ONLINE:
            self._lost_leader(line)
        if source == OFFLINE:
            self._went_offline(line)
        leadership, write, rule = None, None, None
        if target == ONLINE:
            rule = self.elections.rule(line, source)
            leadership, more = self._leadership(line, source, rule)
            # The controller elects running brokers only.
            memory.ensure_running(leadership["leader"])
            inferred = inferred + more
            write = "create" if source == NEW else "set"
        self._change(line, "partition", (source, target), leadership, write, inferred, rule=rule)

    def _lost_leader(self, line: Line) -> None:
        """Record the cause of a transition to OfflinePartition as inferred, unless a log line has shown the cause.

        The cause is a request to delete the topic, or the end of the leader's process.
        """
        tp = line.partition
        # The topic is being deleted if the partition becomes NonExistentPartition next.
        after = self.processes.ahead.next(self.processes.position, "move", tp)
        if (after and state_name(after.facts["to_state"]) == GONE) or self._topic(tp) in self._deleting:
            # Up to 2.2 a partition follows its replicas, whose last line may have shown the end of the deletion.
            if tp in self.memory.leaderships or tp in self.memory.assigned:
                self._delete_topic(self._topic(tp), RECORD)
            return
        leader = self.memory.leaderships.get(tp, {}).get("leader", -1)
        if leader in self.memory.alive and leader != line.facts["controller"]:
            self.processes.fail(leader)

    def _went_offline(self, line: Line) -> None:
        """An inferred transition, before 2.6: since then a line shows the transition itself."""
        tp, controller, epoch = line.partition, line.facts["controller"], line.facts["epoch"]
        if self.unlogged.hides_offline and self._states.get((controller, epoch, tp), ("",))[0] == ONLINE:
            self._change(line, "partition", (ONLINE, OFFLINE), None, None, [RECORD], tp)

    def _replica(self, line: Line, source: str, target: str, inferred: list[str], smaller: Leadership | None) -> None:
        tp, replica = line.partition, line.facts["replica"]
        if smaller and smaller["leader"] >= 0 and smaller["leader"] not in self.memory.incarnations:
            self.memory.ensure_running(smaller["leader"])
        after = self.processes.ahead.next(self.processes.position, "move", line.subject)
        is_removed = target == OFFLINE_REPLICA and after is not None and after.facts["to_state"] == DELETED
        if after and is_removed and self._is_deletion(line, after):
            self._delete_topic(self._topic(tp), RECORD)
        # The line of an assignment without the replica may come before those of its deletion in one millisecond.
        is_present = target in (NEW_REPLICA, ONLINE_REPLICA, OFFLINE_REPLICA) and not is_removed
        if is_present and replica not in self.memory.assigned.get(tp, [replica]):
            self.memory.assign({tp: [*self.memory.assigned[tp], replica]}, RECORD)
        self._change(line, "replica", (source, target), smaller, "set" if smaller else None, inferred, f"{tp}@{replica}")
        if target == GONE_REPLICA and self._topic(tp) in self._deleting:
            self._retire(line, tp, replica)

    def _is_deletion(self, line: Line, after: Line) -> bool:
        """Return whether the transition to OfflineReplica in `line` belongs to a topic's deletion, False for a reassignment.

        `after` is the replica's next line, its transition to ReplicaDeletionStarted.
        """
        tp = line.partition
        leader = self.memory.leaderships.get(tp, {}).get("leader", -1)
        # A reassignment keeps the replica of the leader, and a deletion moves it to OfflineReplica before any next move.
        if leader in (-1, line.facts["replica"]) or leader not in self.memory.alive:
            return True
        former = self._states.get((line.facts["controller"], line.facts["epoch"], f"{tp}@{leader}"))
        of_leader = self.processes.ahead.next(self.processes.position, "move", f"{tp}@{leader}")
        return (former is not None and former[0] == OFFLINE_REPLICA) or (
            of_leader is not None and of_leader.facts["to_state"] == OFFLINE_REPLICA and of_leader.at_ms <= after.at_ms
        )

    def _change(
        self, line: Line, machine: str, move: tuple[str, str], leadership: Leadership | None, write: str | None,
        inferred: list[str], subject: str = "", rule: str | None = None,
    ) -> RecordId:  # fmt: skip
        """Add the `change` record of a transition; return the record's id.

        Args:
            line: the log line that shows the transition.
            machine: "partition" or "replica".
            move: (state before, state after), such as ("NewReplica", "OnlineReplica").
            leadership: the leader, ISR and epochs after the transition.
            write: "create" or "set" if the transition writes `leadership` to the state znode, else None.
            inferred: the names of the values that no log line has.
            subject: the partition or replica; "" means the subject of `line`.
            rule: the kind of the election, such as "unclean"; None without an election.
        """
        memory, controller, epoch = self.memory, line.facts["controller"], line.facts["epoch"]
        subject = subject or line.subject
        written: dict[str, Any] = {}
        if write and leadership:
            memory.versions[state_path(TopicPartition.parse(line.partition))] = leadership["zk_version"]
            memory.leaderships[line.partition] = leadership
            memory.zxid += 1
            written = {"zxid": memory.zxid, "epoch_zk_version": -1}
        fields = {"machine": machine, "subject": subject, "source": move[0], "target": move[1], "leadership": leadership}
        record = memory.note(
            controller, "change", self.processes.cause(controller), ", ".join(inferred) or None,
            **fields, write=write, rule=rule, **written, **self._mismatch(line, machine, subject, move),
        )  # fmt: skip
        self._states[controller, epoch, subject] = move[1], line.place
        self.processes.causes[controller] = record
        return record

    def _mismatch(self, line: Line, machine: str, subject: str, move: tuple[str, str]) -> dict[str, str]:
        """Return {"mismatch": reason} for a transition that is illegal or contradicts an earlier log line, else {}.

        `machine` is "partition" or "replica", `subject` its name; `move` is (state before, state after).
        """
        former = self._states.get((line.facts["controller"], line.facts["epoch"], subject))
        source, target = move
        before = f", after {former[1]}" if former else ""
        if move not in self._legal[machine]:
            reason = f"{self._release} has no transition from {source} to {target}: {line.place}{before}"
        elif former and former[0] != source:
            reason = f"{line.place} leaves {source}, and {former[1]} has entered {former[0]}"
        else:
            return {}
        return {"mismatch": reason} | ({"former_line": former[1]} if former else {})

    def failed(self, line: Line) -> None:
        """Read the log line about a refused or failed transition, and add a journal record of the kind `failed_change`."""
        machine, facts = ("replica" if "replica" in line.facts else "partition"), line.facts
        # A record needs the controller and its epoch.
        if "controller" not in facts or "epoch" not in facts:
            return
        controller = facts["controller"]
        self.processes.speaks(controller, facts["epoch"])
        known = self._states.get((controller, facts["epoch"], line.subject))
        source, target = facts.get("from_state") or (known[0] if known else GONE_REPLICA), state_name(facts["to_state"])
        fields = {"machine": machine, "subject": line.subject, "source": state_name(source), "target": target}
        if fields["source"] == OFFLINE:
            self._went_offline(line)
        cause = self.processes.cause(controller)
        self.memory.note(controller, "failed_change", cause, None, reason=NOT_KNOWN, illegal=False, **fields)

    # ---------------------------------------------------------------- leaderships

    def _leadership(self, line: Line, source: str, rule: str | None) -> tuple[Leadership, list[str]]:
        """Return the leader, ISR and epochs that a transition to OnlinePartition has written, and the names of inferred values.

        `source` is the state before the transition, `rule` the kind of election, such as "unclean".
        """
        tp, facts, memory = line.partition, line.facts, self.memory
        former = memory.leaderships.get(tp)
        # The kind of an election without a rule follows from the ISR before, which may have changed without a line.
        kind = ["kind"] if former and source == OFFLINE and rule is None else []
        version = facts.get("zk_version", former["zk_version"] + 1 if former and source != NEW else 0)
        leader = facts.get("leader", -1)
        found = {"controller_epoch": facts["epoch"], "zk_version": version, "leader": leader}
        if "isr" in facts:
            return found | {"isr": facts["isr"], "leader_epoch": facts["leader_epoch"]}, kind
        for known in (self.elections.elected.pop(tp, None), self._sent_next(tp)):
            if known and known["leader"] == leader and not (former and known["leader_epoch"] < former["leader_epoch"]):
                return found | {name: known[name] for name in ("isr", "leader_epoch")}, kind
        epoch = former["leader_epoch"] + 1 if former and source != NEW else 0
        candidates = former["isr"] if former and source != NEW else memory.assigned.get(tp, [])
        leaving = memory.leaving if rule == SHUTDOWN else ()
        isr = [broker for broker in candidates if not memory.has_ended(broker) and broker not in leaving]
        return found | {"isr": isr if leader in isr else [leader], "leader_epoch": epoch}, ["isr", "leader_epoch", *kind]

    def _sent_next(self, tp: str) -> Leadership | None:
        """Return the leader, ISR and epochs in the first LeaderAndIsr line about a partition after the line that is being read.

        Return None without such a line, and if a line about a transition of the partition stands before it in the same file.
        """
        ahead, position = self.processes.ahead, self.processes.position
        sent, move = ahead.next(position, "state", tp), ahead.next(position, "move", tp)
        if sent is None or (move is not None and (move.at_ms, move.n) < (sent.at_ms, sent.n) and move.file == sent.file):
            return None
        return sent.facts

    def isr_removed(self, line: Line) -> None:
        """Read the log line about the removal of an offline replica from the ISR, and record the replica's transition.

        The record of the transition has the smaller ISR.
        """
        tp, facts, controller = line.partition, line.facts, line.facts["controller"]
        epoch = facts.get("epoch", self.processes.terms.get(controller))
        if epoch is None:
            return
        self.processes.speaks(controller, epoch)
        former = self.memory.leaderships.get(tp)
        version = facts.get("zk_version", former["zk_version"] + 1 if former else 0)
        smaller = {name: facts[name] for name in ("leader", "isr", "leader_epoch")}
        smaller |= {"zk_version": version, "controller_epoch": epoch}
        if "replica" not in facts:
            # The log line does not name the replica: the transition comes with a later one.
            self._smaller[tp].append(smaller)
            return
        # A later log line of the transition and this one make one record.
        after = self.processes.ahead.next(self.processes.position, "move", line.subject)
        if after and after.facts["to_state"] == OFFLINE_REPLICA and after.facts.get("epoch") == epoch:
            self._taken.add((after.n, after.file))
            self._replica(after._replace(file=line.file, n=line.n), after.facts["from_state"], OFFLINE_REPLICA, [], smaller)
            return
        known = self._states.get((controller, epoch, line.subject))
        self._replica(line, known[0] if known else ONLINE_REPLICA, OFFLINE_REPLICA, ["source"], smaller)

    def isr_changed(self, line: Line) -> None:
        """Read the log line about an ISR change by the partition's leader, and record the write of the state znode."""
        tp, broker = line.partition, line.facts["broker"]
        former, isr = self.memory.leaderships.get(tp), line.facts.get("isr_to", line.facts.get("isr"))
        stale = self.processes.ahead.next(self.processes.position, "stale", tp)
        # The ISR is known already, or the write failed because its zk version was stale.
        if not isr or isr == (former and former["isr"]) or (stale and stale.file == line.file and stale.n == line.n + 1):
            return
        # A former leader, which does not know the next one yet, has an old ISR and an old zk version, so its write fails.
        if former and former["leader"] != broker and {*former["isr"]} != {*(line.facts.get("isr_from") or former["isr"])}:
            return
        self.memory.ensure_running(broker)
        inferred = None if former else "leader_epoch, controller_epoch"
        known = former or {"leader": broker, "leader_epoch": 0, "controller_epoch": 0, "zk_version": -1}
        version = line.facts.get("zk_version", known["zk_version"] + 1)
        self.memory.set_leadership(tp, known | {"isr": isr, "zk_version": version}, broker, None, inferred)

    # ---------------------------------------------------------------- topics

    def assigned(self, line: Line) -> None:
        """Record the write of a topic znode if a log line has a new assignment of the topic's partitions."""
        found = line.facts.get("assignment")
        if isinstance(found, dict):
            self.memory.assign(found, None)
        elif "topic" in line.facts and (replicas := line.facts.get("replicas") or found):
            self.memory.assign({line.partition: replicas}, None)

    def deletion_requested(self, line: Line) -> None:
        """Read the log line with which the controller begins to delete topics; record a request for each topic."""
        for topic in line.facts["topics"]:
            self._delete_topic(topic, None)

    def deletion_completed(self, line: Line) -> None:
        """Read the log line with which the controller ends the deletion of topics, and record the deletion of their znodes."""
        for topic in line.facts["topics"]:
            self._delete_topic(topic, RECORD)
            self._forget(topic, line.facts["controller"], None)

    def _delete_topic(self, topic: str, inferred: str | None) -> None:
        if topic not in self._deleting:
            self._deleting.add(topic)
            self.memory.write(None, None, inferred, (delete_topic_path(topic), "", False))

    def _retire(self, line: Line, tp: str, replica: int) -> None:
        """Store that `replica` of the partition `tp` has become NonExistentReplica.

        If it is the topic's last replica and no later line reports the end of the topic's deletion, record this end as inferred.
        """
        topic = self._topic(tp)
        retired = self._retired[topic]
        retired.add(f"{tp}@{replica}")
        every = {f"{name}@{b}" for name, ids in self.memory.assigned.items() if self._topic(name) == topic for b in ids}
        if every <= retired and self.processes.ahead.next(self.processes.position, "deleted", topic) is None:
            self._forget(topic, line.facts["controller"], RECORD)

    def _forget(self, topic: str, controller: int, inferred: str | None) -> None:
        self.memory.ensure_running(controller)
        cause = self.processes.cause(controller)
        self.memory.forget_topic(topic, controller, cause, inferred, delete_topic_path(topic))
        self._deleting.discard(topic)
        self._retired.pop(topic, None)
        kept = {key: value for key, value in self._states.items() if self._topic(key[2].partition("@")[0]) != topic}
        self._states = kept

    @staticmethod
    def _topic(tp: str) -> str:
        return tp.rpartition("-")[0]
