"""Reads the lines about elections, which come before the lines of the transitions: the selected leader, and why it was elected.

Up to 1.0 "No broker in ISR is alive" shows an unclean election, and "Selected new leader and ISR" without this line shows a
clean election. From 1.1 on no such line shows the kind of an offline partition's election: the kind is inferred from the ISR
before the election. Exception: from 3.2 on, the recovery state RECOVERING of the new leader shows an unclean election.

Source: the selectors of PartitionLeaderSelector.scala (0.8.0 to 1.0), onPreferredReplicaElection and onReplicaElection of
KafkaController.scala (0.8.0 to 3.9).
"""

from kcontrol.pipeline.log_journal.log_line import Line, named_partitions
from kcontrol.pipeline.log_journal.memory import Leadership, Memory

NEW, ONLINE, OFFLINE = "NewPartition", "OnlinePartition", "OfflinePartition"
CLEAN, UNCLEAN, PREFERRED, REASSIGN, SHUTDOWN = "offline", "unclean", "preferred", "reassign", "controlled_shutdown"
"""The rules of elections, as the field `rule` of journal records has them."""
RULES = {
    "clean_election": CLEAN, "unclean_election": UNCLEAN, "leader_moved_on_shutdown": SHUTDOWN, "preferred_not_leader": PREFERRED,
    "reassign_reelect": REASSIGN, "reassign_leader_dead": REASSIGN,
}  # fmt: skip
"""The rule of the partition's next election, by the kind of a line about the partition."""
RECOVERING = "RECOVERING"


class ElectionLines:
    """Stores what log lines say about an election before the line of the transition: leader, ISR and rule.

    The rule is the kind of election, such as "unclean". No method adds a journal record.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._rules: dict[str, str] = {}  # partition -> the rule of its next election
        self._ended: dict[str, tuple[str | None, int]] = {}  # partition -> the rule and the time of its last "completed"
        self.elected: dict[str, Leadership] = {}  # partition -> the leadership of its next transition
        self._recovering: set[str] = set()

    def selected(self, line: Line) -> None:
        """Store the leader, ISR and leader epoch in a line about an election (up to 1.0), until the line of the transition."""
        if {"leader", "isr", "leader_epoch", "topic"} <= line.facts.keys():
            self.elected[line.partition] = {name: line.facts[name] for name in ("leader", "isr", "leader_epoch")}
            # An unclean election has logged its warning before this line.
            if line.kind == "leader_selected" and self._rules.get(line.partition) != UNCLEAN:
                self._rules[line.partition] = CLEAN

    def ruled(self, line: Line) -> None:
        """Store the rule, such as "unclean", that a line shows for the next election of the partition in the line."""
        self._rules[line.partition] = RULES[line.kind]

    def preferred(self, line: Line) -> None:
        """Store the rule "preferred" for the next election of each partition in the line about preferred replica elections."""
        if line.facts.get("election_type") in (None, "PREFERRED"):
            self._rules |= dict.fromkeys(named_partitions(line), PREFERRED)

    def ended(self, line: Line) -> None:
        """Remove the rule, such as "preferred", stored for a partition's next election: `line` shows the end of this election."""
        # The election may have had no transition, which would have removed the rule; the transition's line, in another file,
        # may also come later in this millisecond.
        self._ended[line.partition] = self._rules.pop(line.partition, None), line.at_ms

    def rule(self, line: Line, source: str) -> str | None:
        """Return the rule, such as "unclean", of the election that ends with `line`, a transition to OnlinePartition.

        Return None if no line shows the rule. `source` is the state before the transition.
        """
        tp, leader, memory = line.partition, line.facts.get("leader", -1), self.memory
        ended, at_ms = self._ended.pop(tp, (None, 0))
        shown = self._rules.pop(tp, ended if at_ms == line.at_ms else None)
        was_recovering = tp in self._recovering
        recovers = line.facts.get("recovery") == RECOVERING
        (self._recovering.add if recovers else self._recovering.discard)(tp)
        former = memory.leaderships.get(tp, {}).get("leader", -1)
        if source == NEW:
            return None
        if source == ONLINE and former in memory.leaving and former != leader:
            return SHUTDOWN
        if source == OFFLINE and recovers and not was_recovering:
            return UNCLEAN
        # The first replica may lead already; then the line about its election belongs to no transition.
        is_first = memory.assigned.get(tp, [leader])[:1] == [leader]
        return shown if shown != PREFERRED or is_first else None
