"""The assignors that keep what members have: sticky (KIP-54) and cooperative-sticky (KIP-429), as Kafka 2.8 has them.

Source: AbstractStickyAssignor.java, StickyAssignor.java, CooperativeStickyAssignor.java (2.8).
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from kcontrol.group.assignors import (
    Assignment,
    Assignor,
    Members,
    Partitions,
    Subscription,
    assign_range,
    assign_round_robin,
    partitions_of,
)
from kcontrol.group.hash_order import in_hash_order
from kcontrol.model import TopicPartition

UNKNOWN = -1


class Claims(NamedTuple):
    """What members of the newest generation own, what several of them claim, and who was asked before it was known."""

    owned: Assignment
    contested: set[TopicPartition]
    asked: list[str]
    are_equal: bool


def claims(partitions: Partitions, members: Members) -> Claims:
    """Walk the members; it ends early at the first whose topics are not those of the others. Source: allSubscriptionsEqual."""
    owned, owner, newest = Assignment(), dict[TopicPartition, str](), UNKNOWN
    contested, current, topics = set[TopicPartition](), list[str](), set[str]()
    for id, member in members.items():
        topics = topics or set(member.topics)
        if set(member.topics) != topics or len(member.topics) != len(topics):
            return Claims(owned, contested, list(owned), are_equal=False)
        owned[id] = []
        generation = newest if member.generation is None and newest == UNKNOWN else member.generation
        if generation is None or generation < newest:
            continue
        if generation > newest:
            newest = generation
            owner.clear()
            contested.clear()
            for other in current:
                owned[other].clear()
            current.clear()
        current.append(id)
        for tp in (tp for tp in member.owned if tp.topic in partitions):
            if tp not in owner:
                owner[tp] = id
                owned[id].append(tp)
            else:
                contested.add(tp)
                owned[owner[tp]] = [other for other in owned[owner[tp]] if other != tp]
    return Claims(owned, contested, list(owned), are_equal=True)


def path(partitions: Partitions, members: Members) -> str:
    """Which of the two algorithms is taken: "constrained" where all subscribe to the same topics, or "general"."""
    return "constrained" if claims(partitions, members).are_equal else "general"


# ---------------------------------------------------------------- all subscribe to the same


def constrained(partitions: Partitions, found: Claims) -> tuple[Assignment, dict[TopicPartition, str]]:
    """Fill everybody up to the same number, and say which partitions pass from one member to another."""
    free = dict.fromkeys(tp for topic in sorted(partitions) for tp in partitions_of(partitions, topic))
    least, left_over = divmod(len(free), len(found.owned))
    most = least + (left_over > 0)
    assigned: Assignment = {}
    moving, revoked = dict[TopicPartition, str](), set(found.contested)
    unfilled, at_least, at_most = list[str](), deque[str](), deque[str]()
    for id, owned in found.owned.items():
        owned = [tp for tp in owned if tp not in found.contested]
        assigned[id] = owned[:most]
        revoked |= set(owned[most:])
        for tp in assigned[id]:
            free.pop(tp, None)
        if len(owned) < least:
            unfilled.append(id)
        else:
            at_least += [id] if len(assigned[id]) == least else []
            at_most += [id] if len(assigned[id]) == most else []
    waiting = deque(free)

    def give(tp: TopicPartition, id: str) -> None:
        assigned[id].append(tp)
        if tp in revoked:
            moving[tp] = id

    unfilled.sort()
    while unfilled and waiting:
        for id in tuple(unfilled):
            if waiting:
                give(waiting.popleft(), id)
                if len(assigned[id]) == least:
                    at_least.append(id)
                    unfilled.remove(id)
    for id in unfilled:
        while len(assigned[id]) < least:
            tp = assigned[at_most.popleft()].pop(0)
            assigned[id].append(tp)
            moving[tp] = id
        at_least.append(id)
    while waiting:
        give(waiting.popleft(), at_least.popleft())
    return assigned, moving


# ---------------------------------------------------------------- the general case


class General:
    """One run: who has what, who may have what, and what was moved from whom to whom."""

    def __init__(self, partitions: Partitions, members: Members) -> None:
        known = [tp for topic in partitions for tp in partitions_of(partitions, topic)]
        self.takers = {tp: [id for id, member in members.items() if tp.topic in member.topics] for tp in known}
        self.wanted = {id: [tp for t in member.topics for tp in partitions_of(partitions, t)] for id, member in members.items()}
        self.held: Assignment = {id: [] for id in members}
        self.before: dict[TopicPartition, str] = {}
        self.moved: dict[TopicPartition, tuple[str, str]] = {}
        self.most_moved: dict[tuple[str, str, str], int] = {}
        self.must_revoke = False
        for tp, ids in _by_generation(members).items():
            if tp in self.takers and tp.topic in members[ids[0]].topics:
                self.held[ids[0]].append(tp)
            elif tp in self.takers:
                self.must_revoke = True
            if len(ids) > 1:
                self.before[tp] = ids[1]

    def run(self) -> Assignment:
        """Hand out what is free, then move partitions until it is balanced, unless that makes nothing better."""
        is_first = not any(self.held.values())
        kept = {tp for held in self.held.values() for tp in held}
        in_order = sorted(self.takers, key=lambda tp: (len(self.takers[tp]), tp))
        free = [tp for tp in in_order if tp not in kept]
        for tp in free:
            if self.takers[tp]:
                self.held[self.first(tp)].append(tp)
        fixed = {id: self.held.pop(id) for id in tuple(self.held) if not self.takes_part(id)}
        as_it_was = {id: list(held) for id, held in self.held.items()}
        movable = [tp for tp in in_order if len(self.takers[tp]) > 1]
        if not self.must_revoke:
            self.reassign([tp for tp in movable if tp not in kept])
        has_moved = self.reassign(movable)
        if not is_first and has_moved and _score(self.held) >= _score(as_it_was):
            self.held = as_it_was
        return self.held | fixed

    def ranked(self) -> list[str]:
        return sorted(self.held, key=lambda name: (len(self.held[name]), name))

    def first(self, tp: TopicPartition) -> str:
        """Who of those that may take it has least."""
        return next(id for id in self.ranked() if tp in self.wanted[id])

    def takes_part(self, id: str) -> bool:
        """Whether a member can get more, or holds something that somebody else might have."""
        return len(self.held[id]) < len(self.wanted[id]) or any(len(self.takers[tp]) > 1 for tp in self.held[id])

    def is_balanced(self) -> bool:
        ranked = self.ranked()
        if len(self.held[ranked[0]]) >= len(self.held[ranked[-1]]) - 1:
            return True
        holder = {tp: id for id, held in self.held.items() for tp in held}
        return not any(
            len(self.held[id]) < len(self.held[holder[tp]])
            for id in ranked
            for tp in self.wanted[id]
            if tp in holder and holder[tp] != id
        )

    def reassign(self, movable: list[TopicPartition]) -> bool:
        """Pass after pass until one changes nothing; return whether any did."""
        has_moved = False
        while self.one_pass(movable):
            has_moved = True
        return has_moved

    def one_pass(self, movable: list[TopicPartition]) -> bool:
        has_moved = False
        for tp in movable:
            if self.is_balanced():
                break
            source = next(id for id, held in self.held.items() if tp in held)
            more_than = len(self.held[source]) - 1
            before = self.before.get(tp, "")
            if before in self.held and more_than > len(self.held[before]):
                self.move(tp, source, before)
            elif any(more_than > len(self.held[other]) for other in self.takers[tp]):
                self.move(tp, source, self.first(tp))
            else:
                continue
            has_moved = True
        return has_moved

    def move(self, tp: TopicPartition, source: str, target: str) -> None:
        """Move it, or rather take back one of the same topic that went the other way."""
        origin = self.moved[tp][0] if tp in self.moved else source
        back = self.moved_along(tp.topic, (target, origin))
        actual = in_hash_order(back, self.most_moved[tp.topic, target, origin])[0] if back else tp
        holder = next(id for id, held in self.held.items() if actual in held)
        self.held[holder].remove(actual)
        self.held[target].append(actual)
        came_from = holder
        if actual in self.moved:
            way = self.moved.pop(actual)
            came_from = way[0]
            if not self.moved_along(actual.topic, way):
                del self.most_moved[actual.topic, *way]
        if came_from != target:
            self.moved[actual] = (came_from, target)
            key, count = (actual.topic, came_from, target), len(self.moved_along(actual.topic, (came_from, target)))
            self.most_moved[key] = max(count, self.most_moved.get(key, 0))

    def moved_along(self, topic: str, way: tuple[str, str]) -> list[TopicPartition]:
        """Return the partitions of a topic that have moved from the first member to the second, in the order of their moves."""
        return [tp for tp, taken in self.moved.items() if taken == way and tp.topic == topic]


def _by_generation(members: Members) -> dict[TopicPartition, list[str]]:
    """Return who claims each partition, the newest generation first; of two in one known generation the first walked.

    Partitions come in the order of a hash map's walk. Source: prepopulateCurrentAssignments (2.8).
    """
    found: dict[TopicPartition, dict[int, str]] = {}
    for id, member in members.items():
        for tp in member.owned:
            claimants = found.setdefault(tp, {})
            if member.generation is None or member.generation not in claimants:
                claimants[UNKNOWN if member.generation is None else member.generation] = id
    return {tp: [found[tp][generation] for generation in sorted(found[tp], reverse=True)] for tp in in_hash_order(found)}


def _score(held: Assignment) -> int:
    sizes = [len(partitions) for partitions in held.values()]
    return sum(abs(one - other) for index, one in enumerate(sizes) for other in sizes[index + 1 :])


# ---------------------------------------------------------------- the two assignors


def assign_sticky(partitions: Partitions, members: Members) -> Assignment:
    """Balanced first, and as much as possible as it was."""
    found = claims(partitions, members)
    if found.are_equal:
        return constrained(partitions, found)[0]
    # Whoever was asked before the subscriptions turned out to differ has nothing left to say: his data have been read.
    heard = {id: Subscription(m.topics) if id in found.asked else m for id, m in members.items()}
    return General(partitions, heard).run()


def assign_cooperative(partitions: Partitions, members: Members) -> Assignment:
    """The same, but what passes from one member to another is withheld until the first has given it up."""
    found = claims(partitions, members)
    if found.are_equal:
        assigned, moving = constrained(partitions, found)
    else:
        lost = {id: m._replace(generation=UNKNOWN) for id, m in members.items() if id in found.asked and m.generation is not None}
        assigned = General(partitions, {**members, **lost}).run()
        revoked = {tp for id, member in members.items() for tp in member.owned if tp not in assigned[id]}
        added = {tp: id for id, held in assigned.items() for tp in held if tp not in members[id].owned}
        moving = {tp: id for tp, id in added.items() if tp in revoked}
    return {id: [tp for tp in held if moving.get(tp) != id] for id, held in assigned.items()}


ASSIGNORS: dict[str, Assignor] = {
    "range": assign_range,
    "roundrobin": assign_round_robin,
    "sticky": assign_sticky,
    "cooperative-sticky": assign_cooperative,
}
