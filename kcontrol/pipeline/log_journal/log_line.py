"""A log line of a broker with facts (values in its message), and an index that finds the next log line with a given key.

A key says what a line is about, such as ("move", "t-0") for a line about a transition of the partition t-0. The conversion of
logs into a journal uses the index to look ahead.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

Facts = dict[str, Any]
"""The values in a line by name, with JSON's types."""

MOVES = {"partition_transition": "partition", "replica_transition": "replica"}
"""The kinds of lines about a transition, each with its state machine."""
OLD_STATES = {
    "NotExists": "NonExistentPartition", "New": "NewPartition", "Online": "OnlinePartition", "Offline": "OfflinePartition",
}  # fmt: skip
"""The names of a partition's states in the lines of 0.8.0, each with the later name."""
STARTS = ("broker_started", "kafka_start_ms")


class Line(NamedTuple):
    """A line of a broker's log: file, number, time in ms since 1970, kind of message, values in the message, broker."""

    file: str
    n: int
    at_ms: int
    # Such as "partition_transition": a kind in `log_lines.tsv`.
    kind: str
    # The values in the message by name, such as `partition`.
    facts: Facts
    # None if neither this log line nor another one of its file names the broker.
    broker: int | None

    @property
    def place(self) -> str:
        """The file and the number of the line, such as "controller.log:12"."""
        return f"{self.file}:{self.n}"

    @property
    def partition(self) -> str:
        """The partition that the line names, such as "t-0". Raises KeyError for a line that names none."""
        return f"{self.facts['topic']}-{self.facts['partition']}"

    @property
    def subject(self) -> str:
        """The subject of a transition, a partition or a replica such as "t-0@2". Raises KeyError for a line that names none."""
        return f"{self.partition}@{self.facts['replica']}" if "replica" in self.facts else self.partition

    @property
    def speaker(self) -> int | None:
        """The id of the broker that wrote the line: `broker`, else the controller that the line names, else None."""
        return self.broker if self.broker is not None else self.facts.get("controller")


class Ahead:
    """An index of log lines by key: `next` finds the first line with a given key after a given line.

    A key is such as ("move", "t-0@2") for the transitions of a replica, or ("speaks", 1) for all log lines of broker 1.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._places: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for position, line in enumerate(lines):
            for key in _keys(line):
                self._places[key].append(position)

    def next(self, position: int, *key: Any) -> Line | None:
        """The first later line with this key; ("move", "t-0") is passed as two arguments."""
        places = self._places.get(key, ())
        at = bisect_right(places, position)
        return self._lines[places[at]] if at < len(places) else None


def _keys(line: Line) -> Iterator[tuple[Any, ...]]:
    if line.speaker is not None:
        yield "speaks", line.speaker
        if line.kind in STARTS:
            yield "starts", line.speaker
    if line.kind in MOVES:
        yield "move", line.subject
        if "leader_epoch" in line.facts:
            yield "elected", line.subject
    elif line.kind == "leader_and_isr_sent" and "isr" in line.facts:
        yield "state", line.partition
    elif line.kind == "isr_update_stale":
        yield "stale", line.partition
    elif line.kind in ("reassign_assignment_updated", "reassign_updated"):
        yield "assigned", line.partition
    elif line.kind == "reassign_removed":
        yield from (("reassigned", tp) for tp in named_partitions(line))
    elif line.kind == "rebalance_stabilized":
        yield "stabilized", line.facts["group"]
    elif line.kind == "deletion_completed":
        yield from (("deleted", topic) for topic in line.facts["topics"])


def named_partitions(line: Line) -> list[str]:
    """Return the partition or the list of partitions that a log line names, as a list; [] if the line names none."""
    return line.facts.get("partitions") or ([line.partition] if "topic" in line.facts else [])


def state_name(name: str) -> str:
    """Return a state's name in the releases from 0.8.1 on: "OnlinePartition" for "Online" of 0.8.0; a later name is unchanged."""
    return OLD_STATES.get(name, name)
