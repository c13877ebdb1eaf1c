"""The history of one consumer group, from the journal alone: its moments, and for each member the bars of its lane.

* A **moment** is a record that changes the group's state, generation, members or assignments at its coordinator, or that fires
  a deadline of the group. Moments come in the order of the journal. A timer that is set again makes no moment.
* A **bar** is a stretch of moments in which one member is in the same condition: in a generation, waiting for the response to
  its JoinGroup or SyncGroup (the coordinator has parked the request), or in a group that no coordinator has loaded.

A moment has the group in the coordinator's cache. It has neither the views of consumers nor the log of the offsets topic.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from string import ascii_uppercase
from typing import Any, NamedTuple

from kcontrol.core.znodes import topic_path
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC, partition_for
from kcontrol.journal.fold import Fold
from kcontrol.journal.journal import Record
from kcontrol.journal.journal_file import WRONG
from kcontrol.views import folded_state

KINDS = ("run", "start", "stop", "group", "set_timer", "cancel_timer", "fire_timer")
"""The kinds of records that always change the nodes of a cluster, their groups or timers."""
FIRED, OFFSETS_ZNODES = "fire_timer", topic_path(OFFSETS_TOPIC)


class Deadline(NamedTuple):
    """A timer of the group: the member id that it is for (None: the whole group), the name of its event, and when it fires."""

    member_id: str | None
    event: str
    at_ms: int


class Place(NamedTuple):
    """The partition of the offsets topic that stores a group: its number, its leader, and the brokers that load or own it."""

    # The number of the partition; None in a recording, which has no znodes.
    number: int | None = None
    # The leader in the partition's state znode, -1 for no leader; None without a state znode.
    leader: int | None = None
    # The brokers whose coordinators load this partition; in a recording, the brokers that load any partition.
    loading: tuple[int, ...] = ()
    # The brokers whose coordinators own this partition; in a recording, the brokers that own any partition.
    owned: tuple[int, ...] = ()


NO_PLACE = Place()


class Moment(NamedTuple):
    """The group after the journal record with the index `record`, as its coordinator has it in the cache."""

    record: int
    # The time of this record.
    at_ms: int
    # The broker whose coordinator has the group in its cache; None if no coordinator has the group.
    coordinator: int | None
    # The group in this cache; None if `coordinator` is None.
    group: Mapping[str, Any] | None
    # The pending timers of the group from this moment until the next moment. One pair for this record, and one for each later
    # record that only changes timers: (index of the record, the timers after it in the order in which they fire).
    pending: tuple[tuple[int, tuple[Deadline, ...]], ...]
    # The member id of each timer that fires at this record, None for a timer of the whole group.
    fired: tuple[str | None, ...]
    # The partition of the offsets topic that stores the group; None unless `moments` was called with `places=True`.
    place: Place | None = None

    @property
    def deadlines(self) -> tuple[Deadline, ...]:
        """The group's pending timers just before the group changes again or the journal ends, in the order in which they fire."""
        return self.pending[-1][1]

    @property
    def members(self) -> Mapping[str, Any]:
        return self.group["members"] if self.group else {}


def groups(state: Mapping[str, Any]) -> list[str]:
    """The groups that a consumer belongs to or a coordinator has in its cache, sorted."""
    cached = {name for node in state["nodes"].values() for name in node.get("group", {}).get("groups", {})}
    return sorted(cached | {consumer["group"] for consumer in state.get("consumers", {}).values()})


def moments(records: Iterable[Record], group_id: str, *, places: bool = False) -> list[Moment]:
    """Return a Moment for each journal record that changes a group or fires one of its timers; [] for an unknown group.

    With `places`, also for each record that changes the leader, or the owners, of the group's partition of the offsets topic.
    """
    fold, found = Fold(), list[Moment]()
    for index, record in enumerate(records):
        # A group does not depend on the other records, and their fold takes most of the time.
        if not (places or record.kind in KINDS or (record.kind == "update" and record.fields.get("context") == "group")):
            continue
        before = dict(fold.state["nodes"].get(str(record.id.node), {}).get("timers", {})) if record.kind == FIRED else {}
        try:
            fold.add(record)
        except WRONG:  # a damaged journal is shown without the records that contradict those before them
            continue
        if not any(_concerns(path, places) for _, path, _ in fold.noted):
            continue
        fired = tuple(d.member_id for d in _deadlines(before, group_id) if d not in _timers(fold.state, group_id))
        place = _place(fold.state, group_id) if places else None
        pending = ((index, _timers(fold.state, group_id)),)
        moment = Moment(index, record.at_ms, *_coordinated(fold.state, group_id), pending, fired, place)
        if found and not fired and _visible(found[-1]) == _visible(moment):
            if found[-1].deadlines != moment.deadlines:
                found[-1] = found[-1]._replace(pending=found[-1].pending + pending)
        elif found or moment.group:
            found.append(moment)
    return found


def _concerns(path: Sequence[Any], places: bool) -> bool:
    """Whether a change at `path` can change a group; with `places`, also through the offsets topic's znodes."""
    if path[0] == "znodes":
        return places and (len(path) < 2 or str(path[1]).startswith(OFFSETS_ZNODES))
    return path[0] == "nodes" and (len(path) < 3 or path[2] in ("group", "timers"))


def _place(state: Mapping[str, Any], group_id: str) -> Place:
    known = folded_state.partitions_of(OFFSETS_TOPIC, state["znodes"])
    held = known[partition_for(group_id, len(known))] if known else None
    number = held.number if held else None
    sets = {int(n): node.get("group", {}) for n, node in state["nodes"].items()}
    loading, owned = (
        tuple(sorted(n for n, group in sets.items() if number in group.get(name, ()) or (held is None and group.get(name))))
        for name in ("loading", "owned")
    )
    return Place(number, held.leader if held else None, loading, owned)


def _visible(moment: Moment) -> Any:
    """What the picture shows of a moment: moments that are equal here are one column."""
    if moment.group is None:
        # No coordinator has the group in its cache.
        return moment.coordinator, moment.place
    # Timers are left out: a timer that is set again needs no column.
    members = {id: (kind(member), member["assignment"]) for id, member in moment.members.items()}
    return moment.coordinator, moment.group["state"], moment.group["generation"], members, moment.place


def _coordinated(state: Mapping[str, Any], group_id: str) -> tuple[int | None, Mapping[str, Any] | None]:
    """Return the broker whose coordinator has the group in its cache, and the group in this cache.

    Of several such brokers, return the broker with the latest coordinator epoch; without such a broker, (None, None).
    """
    holding = [
        (max(node["group"].get("coordinator_epochs", {}).values(), default=-1), int(broker), node["group"]["groups"][group_id])
        for broker, node in state["nodes"].items()
        if group_id in node.get("group", {}).get("groups", {})
    ]
    if not holding:
        return None, None
    _, broker, group = max(holding, key=lambda entry: entry[:2])
    return broker, group


def _timers(state: Mapping[str, Any], group_id: str) -> tuple[Deadline, ...]:
    return tuple(sorted((d for node in state["nodes"].values() for d in _deadlines(node["timers"], group_id)), key=_when))


def _when(deadline: Deadline) -> tuple[int, str]:
    return deadline.at_ms, deadline.member_id or ""


def _deadlines(timers: Mapping[str, Any], group_id: str) -> Iterator[Deadline]:
    for timer in timers.values():
        event = timer["event"]
        if event.get("group_id") == group_id:
            yield Deadline(event.get("member_id"), event["event"], timer["at_ms"])


class Bar(NamedTuple):
    """Successive columns of the group strip, a picture, in which a member keeps its condition, such as "join".

    `first` and `last` are the indexes of the first and the last of these columns.
    """

    first: int
    last: int
    # "member" (in the generation), "join" or "sync" (a parked JoinGroup or SyncGroup), or "unknown" (no coordinator has loaded
    # the group).
    kind: str
    # The group's generation, for "unknown" the last one before.
    generation: int


class Lane(NamedTuple):
    """One row of the group strip: a member id with its bars in the order of time.

    A bar is a time in the generation, or a time with a parked JoinGroup or SyncGroup.
    """

    member_id: str
    # "A" for the first member id, then "B" and so on.
    letter: str
    # The group.instance.id or the client id; a client's second member id is "anna (2)".
    name: str
    bars: tuple[Bar, ...]


def lanes(found: Sequence[Moment]) -> tuple[Lane, ...]:
    """A row of the group strip per member id, in the order of their first moments."""
    clients: dict[str, str] = {}
    for moment in found:
        for id, member in moment.members.items():
            name = member["instance_id"] or member["client_id"]
            again = sum(known == name or known.startswith(f"{name} (") for known in clients.values())
            clients.setdefault(id, f"{name} ({again + 1})" if again else name)
    letters = iter([*ascii_uppercase, *(f"{a}{b}" for a in ascii_uppercase for b in ascii_uppercase)])
    return tuple(Lane(id, next(letters), name, tuple(_bars(found, id))) for id, name in clients.items())


def _bars(found: Sequence[Moment], member_id: str) -> Iterator[Bar]:
    standings: list[tuple[str, int] | None] = []
    for moment in found:
        if moment.group is None:
            was = standings[-1] if standings else None
            standings.append(was and ("unknown", was[1]))
        else:
            member = moment.members.get(member_id)
            standings.append(member and (kind(member), moment.group["generation"]))
    for standing, first, last in stretches(standings):
        if standing:
            yield Bar(first, last, *standing)


def kind(member: Mapping[str, Any]) -> str:
    return "join" if member["awaiting_join"] else "sync" if member["awaiting_sync"] else "member"


def stretches(values: Iterable[Any]) -> Iterator[tuple[Any, int, int]]:
    """Yield (value, first position, last position) for each group of equal neighbours: ("a", 0, 1) for "aab"."""
    place = 0
    for value, same in groupby(values):
        length = len(list(same))
        yield value, place, place + length - 1
        place += length
