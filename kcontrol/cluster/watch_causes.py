"""Finds the journal record of the write that made a watch fire."""

from collections.abc import Iterator, Sequence

from kcontrol.core.effects import WatchEvent
from kcontrol.core.model import PartitionReplica, TopicPartition
from kcontrol.core.znodes import parent, state_path
from kcontrol.journal.journal import Record, RecordId


def cause_of_notification(step: Sequence[Record], event: WatchEvent) -> RecordId | None:
    """Return the id of the latest record in `step` whose write fired the watch event `event`, None if there is no such record.

    `step` has the journal records of one step. The creation or deletion of a child fires NodeChildrenChanged.
    """
    by_children = event.type == "NodeChildrenChanged"
    for record in step[::-1]:
        for path, is_set in _written_paths(record):
            if by_children and parent(path) == event.path and not is_set:
                return record.id
            if not by_children and path == event.path:
                return record.id
    return None


def _written_paths(record: Record) -> Iterator[tuple[str, bool]]:
    """Yield (path, is_set) for each write in a journal record; `is_set` is False for a creation or deletion."""
    fields = record.fields
    if record.kind == "write" and fields["error"] is None:
        for op in fields["ops"]:
            yield op[1], op[0] == "set"
    elif record.kind == "change" and fields["write"]:
        subject = fields["subject"]
        tp = subject.topic_partition if isinstance(subject, PartitionReplica) else TopicPartition(*subject)
        yield state_path(tp), fields["write"] == "set"
    elif record.kind == "close":
        for path in fields["deleted"]:
            yield path, False
