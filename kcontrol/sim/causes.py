"""Which record of a step made a watch fire."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kcontrol.effects import WatchEvent
from kcontrol.model import PartitionReplica, TopicPartition
from kcontrol.runtime.journal import Record, RecordId
from kcontrol.znodes import parent, state_path


def of_watch_event(step: Sequence[Record], event: WatchEvent) -> RecordId | None:
    """The last record of a step that touched the path, or for a change of children one that came or went below it."""
    by_children = event.type == "NodeChildrenChanged"
    for record in step[::-1]:
        for path, is_set in _touched(record):
            if by_children and parent(path) == event.path and not is_set:
                return record.id
            if not by_children and path == event.path:
                return record.id
    return None


def _touched(record: Record) -> Iterator[tuple[str, bool]]:
    """The paths that a record says were written, each with whether the znode existed before and after."""
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
