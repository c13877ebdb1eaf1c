"""Infers what the lines of a release leave out: states before a transition (0.8.0), and ISRs made smaller (1.1 to 2.5).

0.8.0 prints no state before a replica's transition. As the state before a partition's transition to OnlinePartition it always
prints OnlinePartition. So these states are inferred. The first state in a controller's term is the state that the state machine
sets at its start: Online if the replica's broker, or the partition's leader, is live, else Offline.

From 1.1 to 2.5 no line says that the controller takes a replica out of the ISR at the transition to OfflineReplica; up to 1.0 and
from 2.6 on a line has the new ISR.

Source: PartitionStateMachine and ReplicaStateMachine (0.8.0), removeReplicasFromIsr of ReplicaStateMachine.scala (1.1 to 2.5).
"""

from kcontrol.core.releases import sort_key
from kcontrol.pipeline.log_journal.election_lines import NEW, OFFLINE, ONLINE
from kcontrol.pipeline.log_journal.log_line import Line
from kcontrol.pipeline.log_journal.memory import Leadership, Memory
from kcontrol.pipeline.log_journal.processes import Processes

ONLINE_REPLICA, OFFLINE_REPLICA, GONE_REPLICA, NEW_REPLICA = "OnlineReplica", "OfflineReplica", "NonExistentReplica", "NewReplica"


class Unlogged:
    """The values that the lines of `release` leave out; each method returns inferred values, and adds no record."""

    def __init__(self, memory: Memory, processes: Processes, release: str) -> None:
        self.memory, self.processes = memory, processes
        self._is_0_8_0 = sort_key(release) < sort_key("0.8.1")
        self._shrinks = sort_key("1.1") <= sort_key(release) < sort_key("2.6")
        # From 2.6 on log4j.properties sets INFO for state.change.logger; the line of a transition to OfflinePartition is TRACE.
        self.hides_offline = sort_key(release) >= sort_key("2.6")

    def named_source(self, line: Line, target: str) -> str | None:
        """None if the line lacks the state; lines of 0.8.0 about OnlinePartition have a wrong one."""
        source: str | None = line.facts.get("from_state")
        return None if self._is_0_8_0 and target == ONLINE else source

    def first_state(self, line: Line, target: str) -> str:
        """Return the state that a new controller's state machine gives the partition or replica in `line` at its start.

        No line has this state. It is inferred from `target`, the state after the transition in `line`.
        """
        controller, epoch = line.facts["controller"], line.facts["epoch"]
        if "replica" in line.facts:
            is_live = self.processes.was_live(controller, epoch, line.facts["replica"])
            return GONE_REPLICA if target == NEW_REPLICA else ONLINE_REPLICA if is_live else OFFLINE_REPLICA
        former = self.memory.leaderships.get(line.partition)
        if former is None:
            return NEW
        return ONLINE if self.processes.was_live(controller, epoch, former["leader"]) else OFFLINE

    def smaller_isr(self, line: Line) -> Leadership | None:
        """Return the leader, ISR and epochs that a replica's transition to OfflineReplica has written; None without a write.

        Return None, too, in releases whose log lines have the new ISR.
        """
        tp, replica = line.partition, line.facts["replica"]
        former = self.memory.leaderships.get(tp)
        if not self._shrinks or former is None or replica not in former["isr"]:
            return None
        # The write increments the leader epoch, and so does the next election.
        after = self.processes.ahead.next(self.processes.position, "elected", tp)
        if after and after.facts.get("from_state") != NEW and after.facts["leader_epoch"] < former["leader_epoch"] + 2:
            return None
        return {
            "leader": -1 if former["leader"] == replica else former["leader"],
            "isr": [broker for broker in former["isr"] if broker != replica] or former["isr"],
            "leader_epoch": former["leader_epoch"] + 1,
            "zk_version": former["zk_version"] + 1,
            "controller_epoch": line.facts["epoch"],
        }
