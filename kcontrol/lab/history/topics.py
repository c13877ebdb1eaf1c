"""Yields the rows of tables about topics: deletions and reassignments, from the request in ZooKeeper to its end."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from kcontrol.core.model import ReplicaAssignment
from kcontrol.core.znodes import REASSIGN_PARTITIONS, MalformedZnode, decode_reassignment, decode_topic
from kcontrol.lab.history.entries import Entries, Entry, Row, ZnodeWrite, interval, znode_writes

DELETE_TOPICS, TOPICS = "/admin/delete_topics/", "/brokers/topics/"

Times = list[tuple[Entry, Entry | None]]


def _is_child(path: str, parent: str) -> bool:
    return path.startswith(parent) and "/" not in path[len(parent) :]


def deletion_times(run: Entries) -> dict[str, Times]:
    """Return, by topic, the pairs of journal records that create and delete the topic's znode in `/admin/delete_topics`.

    The second record of a pair is None if the znode was not deleted.
    """
    found: dict[str, Times] = defaultdict(list)
    for write in znode_writes(run, lambda path: _is_child(path, DELETE_TOPICS)):
        times = found[write.path.removeprefix(DELETE_TOPICS)]
        if times and times[-1][1] is None:
            times[-1] = (times[-1][0], write.entry)
        if write.op == "create":
            times.append((write.entry, None))
    return found


def deletions(run: Entries) -> Iterator[Row]:
    """Each request to delete a topic, until the controller deletes the request.

    The request is a znode in `/admin/delete_topics`. `ineligible` is the number of transitions of the topic's replicas to
    ReplicaDeletionIneligible in this time.
    """
    halts = [e for e in run.of("change") if e.r.fields["target"] == "ReplicaDeletionIneligible"]
    for topic, times in deletion_times(run).items():
        of_topic = [e for e in halts if e.r.fields["subject"].partition("@")[0].rpartition("-")[0] == topic]
        for begin, end in times:
            ineligible = sum(begin.n < e.n and (end is None or e.n < end.n) for e in of_topic)
            yield interval(begin, end) | {"topic": topic, "ineligible": ineligible}


Targets = dict[str, list[int]]
"""By partition, such as "t-0", its replicas."""
Assignments = dict[str, ReplicaAssignment]
"""By partition, its replicas, with those that a reassignment adds and removes."""


def assignments(run: Entries) -> dict[int, dict[str, Assignments]]:
    """Return, by the number of a journal record and the topic, the assignments that the record writes to the topic's znode.

    A deleted or malformed znode has no partition.
    """
    found: dict[int, dict[str, Assignments]] = defaultdict(dict)
    for write in znode_writes(run, lambda path: _is_child(path, TOPICS)):
        topic = write.path.removeprefix(TOPICS)
        found[write.entry.n][topic] = {f"{topic}-{number}": of for number, of in _stored(write).items()}
    return found


def reassignments(run: Entries) -> Iterator[Row]:
    """Each reassignment of a partition: the time in which ZooKeeper has its target.

    The target is in `/admin/reassign_partitions` or, as added and removed replicas, in the topic znode.
    """
    asked: Targets = {}
    changing: dict[str, Targets] = {}
    begun: dict[str, tuple[Entry, list[int]]] = {}
    for write in znode_writes(run, lambda path: path == REASSIGN_PARTITIONS or _is_child(path, TOPICS)):
        if write.path == REASSIGN_PARTITIONS:
            asked = _asked(write)
        else:
            changing[write.path] = _changing(write)
        targets = {name: target for found in (*changing.values(), asked) for name, target in found.items()}
        for name in [name for name in begun if name not in targets]:
            begin, target = begun.pop(name)
            yield interval(begin, write.entry) | {"partition": name, "target": target}
        begun |= {name: (write.entry, target) for name, target in targets.items() if name not in begun}
    yield from (interval(begin, None) | {"partition": name, "target": target} for name, (begin, target) in begun.items())


def _asked(write: ZnodeWrite) -> Targets:
    try:
        found = decode_reassignment((write.data or "").encode()) if write.op in ("create", "set") else {}
    except MalformedZnode:
        return {}
    return {str(tp): list(target) for tp, target in found.items()}


def _changing(write: ZnodeWrite) -> Targets:
    """The targets of partitions that add or remove replicas; {} if the znode is deleted or malformed."""
    topic = write.path.removeprefix(TOPICS)
    return {f"{topic}-{number}": list(of.target) for number, of in _stored(write).items() if of.is_being_reassigned}


def _stored(write: ZnodeWrite) -> Mapping[int, ReplicaAssignment]:
    """Return the assignment of each partition in a write of a topic znode; {} if the znode is deleted or malformed."""
    try:
        return decode_topic((write.data or "").encode()).partitions if write.op in ("create", "set") else {}
    except MalformedZnode:
        return {}
