"""The conversion of the facts in broker logs into a journal, so that functions for journals, such as the viewer, work for logs.

A fact is a value in a message, such as the broker. Log lines are read in the order of their times. Each module such as
`partition_lines.py` reads the lines about one subject: partitions, elections, groups, reassignments, requests or processes.

A transition that the machines of the release do not have, or that does not begin where the former one ended, is marked with both
lines. What no line shows has the field `inferred`. An elected leader runs, even if no line has its start.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from kcontrol.journal.journal import JOURNAL_VERSION, OUTSIDE, Record
from kcontrol.pipeline.log_journal.election_lines import RULES
from kcontrol.pipeline.log_journal.group_lines import GroupLines
from kcontrol.pipeline.log_journal.log_line import Ahead, Line
from kcontrol.pipeline.log_journal.memory import Memory, Records
from kcontrol.pipeline.log_journal.partition_lines import PartitionLines
from kcontrol.pipeline.log_journal.processes import Processes
from kcontrol.pipeline.log_journal.reassignment_lines import ReassignmentLines
from kcontrol.pipeline.log_journal.request_lines import HANDLED, SENT, RequestLines

WORLD = "broker logs"
"""The field `world` of the first record of a journal that was made from broker logs; its times are those of a wall clock."""
PART_LINES = 100_000
"""The number of lines that are in memory at a time; a line is explained by later lines of the same part alone."""


def to_journal(lines: Iterable[Line], release: str, brokers: Iterable[int], **about: Any) -> Iterator[Record]:
    """Yield the journal records of log lines, which are in the order of time, for brokers of this release.

    `about` has further fields of the first record, of kind `run`.
    """
    records = Records()
    lines = iter(lines)
    replay = Replay(records, release)
    part = list(islice(lines, PART_LINES))
    begin = {"journal_version": JOURNAL_VERSION, "world": WORLD, "release": release, "brokers": sorted(brokers)}
    records.add(OUTSIDE, 0, "run", None, part[0].at_ms if part else 0, begin | about)
    while part:
        replay.read(part)
        yield from records.taken()
        part = list(islice(lines, PART_LINES))
    yield from records.taken()


class Replay:
    """The conversion of log lines into journal records.

    `read` takes the next lines, in the order of time, and adds their journal records to `records`.
    """

    def __init__(self, records: Records, release: str) -> None:
        self.memory = Memory(records)
        self.processes = Processes(self.memory)
        self.partitions = PartitionLines(self.memory, self.processes, release)
        self.reassignments = ReassignmentLines(self.memory, self.processes, release)
        self.groups = GroupLines(self.memory, self.processes, release)
        self.requests = RequestLines(self.memory, self.processes, release)
        self._readers = self._table()

    def read(self, part: list[Line]) -> None:
        self.processes.ahead = Ahead(part)
        for position, line in enumerate(part):
            if (reader := self._readers.get(line.kind)) is not None:
                self.memory.line, self.processes.position = line, position
                reader(line)

    def _table(self) -> dict[str, Callable[[Line], None]]:
        """From a kind of log line, such as "broker_started", to the method that reads such a line."""
        processes, partitions, moves, elections = self.processes, self.partitions, self.reassignments, self.partitions.elections
        requests, groups = self.requests, self.groups
        return {
            "broker_started": processes.started, "broker_stopped": processes.stopped,
            "controlled_shutdown_started": processes.leaving, "controlled_shutdown_ok": processes.leaving,
            "broker_shutting_down": processes.leaving, "brokers_changed": processes.changed, "live_brokers": processes.live,
            "controller_elected": processes.elected, "controller_epoch": processes.epoch, "controller_ready": processes.epoch,
            "controller_resigning": processes.resigned,
            "partition_transition": partitions.moved, "replica_transition": partitions.moved,
            "partition_transition_failed": partitions.failed, "replica_transition_failed": partitions.failed,
            "leader_isr_new": partitions.isr_removed, "isr_removed_on_offline": partitions.isr_removed,
            "isr_shrunk": partitions.isr_changed, "isr_expanded": partitions.isr_changed, "isr_updated": partitions.isr_changed,
            "topics_changed": partitions.assigned, "partitions_added": partitions.assigned,
            "deletion_requested": partitions.deletion_requested, "deletion_completed": partitions.deletion_completed,
            "reassign_started": moves.started, "reassign_assignment_updated": moves.updated,
            "reassign_updated": moves.updated, "reassign_removed": moves.removed,
            **dict.fromkeys(RULES, elections.ruled), "leader_selected": elections.selected,
            "leader_isr_initialized": elections.selected, "preferred_election_started": elections.preferred,
            "preferred_election_completed": elections.ended, "preferred_election_failed": elections.ended,
            **dict.fromkeys(SENT, requests.sent), **dict.fromkeys(HANDLED, requests.handled),
            "stop_replica_planned": requests.planned, "controller_response": requests.responded,
            "stale_controller": requests.refused,
            "rebalance_prepared": groups.prepared, "rebalance_stabilized": groups.stabilized,
            "assignment_received": groups.assigned, "group_empty": groups.empty, "group_dead": groups.ended,
            "groups_deleted": groups.ended, "group_unloading": groups.ended, "member_joined": groups.joined,
            "static_member_rejoined": groups.rejoined, "member_failed": groups.gone, "member_left": groups.gone,
            "pending_member_expired": groups.gone, "pending_member_left": groups.gone,
            "members_not_rejoined": groups.not_rejoined,
        }  # fmt: skip
