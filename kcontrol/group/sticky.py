"""The assignors of 2.8 that keep owned partitions: sticky (KIP-54), cooperative-sticky (KIP-429).

`constrained` assigns if all members subscribe to equal topics, `GeneralAssignment` otherwise. The
cooperative assignor withholds each partition that changes its owner until the next rebalance.

Source: AbstractStickyAssignor.java, StickyAssignor.java, CooperativeStickyAssignor.java (2.8).
"""

# Both algorithms balance first: no member has two partitions more than a member that could take one
# of them. Among balanced assignments they keep as many owners as they can. Where no rule decides,
# the order of Java's hash maps does (`java_hash_order.py`).
from collections import deque
from typing import NamedTuple

from kcontrol.core.model import TopicPartition
from kcontrol.group.assignors import (
    Assignment,
    Assignor,
    Members,
    Partitions,
    Subscription,
    assign_range,
    assign_round_robin,
    code_units,
    partitions_of,
)
from kcontrol.group.java_hash_order import in_java_hash_map_order

UNKNOWN = -1


class Claims(NamedTuple):
    """The partitions that members claim to own in their subscriptions: the result of `claims`."""

    # By member id; only members of the newest generation own partitions.
    owned: Assignment
    # Partitions that several members of the newest generation claim; no list in `owned` has them.
    contested: set[TopicPartition]
    # The ids of the members that `claims` has read: all members if `are_equal`, else the members
    # before the first member that subscribes to other topics than the members before.
    asked: list[str]
    # Whether all members subscribe to equal topics.
    are_equal: bool


def claims(partitions: Partitions, members: Members) -> Claims:
    """Return the partitions that members own, as their subscriptions state.

    Reading stops at the first member that subscribes to other topics than the members before.
    `partitions` has the number of partitions by topic.

    Source: allSubscriptionsEqual of AbstractStickyAssignor.java (2.8).
    """
    owned, owner, newest = Assignment(), dict[TopicPartition, str](), UNKNOWN
    contested, current, topics = set[TopicPartition](), list[str](), set[str]()
    for id, member in members.items():
        topics = topics or set(member.topics)
        if set(member.topics) != topics or len(member.topics) != len(topics):
            return Claims(owned, contested, list(owned), are_equal=False)
        owned[id] = []
        generation = member.generation
        if generation is None and newest == UNKNOWN:
            generation = newest
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
        # Owned partitions of topics that do not exist are ignored.
        for tp in (tp for tp in member.owned if tp.topic in partitions):
            if tp not in owner:
                owner[tp] = id
                owned[id].append(tp)
            else:
                contested.add(tp)
                owned[owner[tp]] = [other for other in owned[owner[tp]] if other != tp]
    return Claims(owned, contested, list(owned), are_equal=True)


def path(partitions: Partitions, members: Members) -> str:
    """2.8's algorithm: "constrained" if all members subscribe to equal topics, else "general"."""
    return "constrained" if claims(partitions, members).are_equal else "general"


# ---------------------------------------------------------------- equal subscriptions


def constrained(
    partitions: Partitions, found: Claims
) -> tuple[Assignment, dict[TopicPartition, str]]:
    """Return (assignment, moves) for members that subscribe to equal topics.

    `partitions` has the number of partitions by topic, `found` the present owners, and `moves` the
    new owner of each partition that a present owner loses.

    Source: constrainedAssign of AbstractStickyAssignor.java (2.8).
    """
    free = dict.fromkeys(tp for t in sorted(partitions) for tp in partitions_of(partitions, t))
    # Each member is filled up to an equal number of partitions.
    least, left_over = divmod(len(free), len(found.owned))
    most = least + (left_over > 0)
    assigned: Assignment = {}
    # `moving` also has each contested partition, which several members claim.
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

    unfilled.sort(key=code_units)
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


class GeneralAssignment:
    """One run of the general algorithm, for members that subscribe to different topics.

    Source: generalAssign, PartitionMovements of AbstractStickyAssignor.java (2.8).
    """

    def __init__(self, partitions: Partitions, members: Members) -> None:
        known = [tp for topic in partitions for tp in partitions_of(partitions, topic)]
        rows = members.items()
        # By partition: the members that subscribe to its topic.
        self.takers = {tp: [id for id, m in rows if tp.topic in m.topics] for tp in known}
        # By member id: all partitions of the topics to which the member subscribes.
        self.wanted = {
            id: [tp for t in m.topics for tp in partitions_of(partitions, t)] for id, m in rows
        }
        # The assignment so far.
        self.held: Assignment = {id: [] for id in members}
        # By partition that members of several generations claim: its owner in the second newest of
        # them.
        self.before: dict[TopicPartition, str] = {}
        # By partition that was moved: (first owner, present owner).
        self.moved: dict[TopicPartition, tuple[str, str]] = {}
        # By (topic, first owner, present owner): the largest number of such moved partitions.
        self.most_moved: dict[tuple[str, str, str], int] = {}
        # Whether an owner does not subscribe to the topic of its partition any more.
        self.must_revoke = False
        for tp, ids in _by_generation(members).items():
            if tp in self.takers and tp.topic in members[ids[0]].topics:
                self.held[ids[0]].append(tp)
            elif tp in self.takers:
                self.must_revoke = True
            if len(ids) > 1:
                self.before[tp] = ids[1]

    def run(self) -> Assignment:
        """Assign the partitions without an owner, then move partitions to balance the assignment.

        Return the balanced assignment.

        Source: balance (2.8).
        """
        is_first = not any(self.held.values())
        kept = {tp for held in self.held.values() for tp in held}
        in_order = sorted(self.takers, key=lambda tp: (len(self.takers[tp]), tp))
        free = [tp for tp in in_order if tp not in kept]
        for tp in free:
            if self.takers[tp]:
                self.held[self.best_candidate(tp)].append(tp)
        fixed = {id: self.held.pop(id) for id in tuple(self.held) if not self.can_participate(id)}
        as_it_was = {id: list(held) for id, held in self.held.items()}
        movable = [tp for tp in in_order if len(self.takers[tp]) > 1]
        if not self.must_revoke:
            self.reassign([tp for tp in movable if tp not in kept])
        has_moved = self.reassign(movable)
        # If the moves do not improve the balance, and members owned partitions at the start, the
        # assignment before the moves stays.
        if not is_first and has_moved and _score(self.held) >= _score(as_it_was):
            self.held = as_it_was
        return self.held | fixed

    def ranked(self) -> list[str]:
        """Return the member ids: first the member with the fewest partitions, in a tie by id."""
        return sorted(self.held, key=lambda name: (len(self.held[name]), code_units(name)))

    def best_candidate(self, tp: TopicPartition) -> str:
        """Of the subscribers the one with the fewest partitions; StopIteration without one."""
        return next(id for id in self.ranked() if tp in self.wanted[id])

    def can_participate(self, id: str) -> bool:
        """Return whether the member `id` can get a partition, or give one to another member."""
        held = self.held[id]
        return len(held) < len(self.wanted[id]) or any(len(self.takers[tp]) > 1 for tp in held)

    def is_balanced(self) -> bool:
        """Return whether the members' numbers of partitions differ by at most one.

        Also return True if no member could take a partition from a member that has more.

        Source: isBalanced of AbstractStickyAssignor.java (2.8).
        """
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
        """Passes until one moves nothing; returns whether any has moved a partition."""
        has_moved = False
        while self.reassign_once(movable):
            has_moved = True
        return has_moved

    def reassign_once(self, movable: list[TopicPartition]) -> bool:
        """Move each partition whose owner has at least two partitions more than another subscriber.

        Return whether a partition moved.

        Source: performReassignments of AbstractStickyAssignor.java (2.8).
        """
        has_moved = False
        for tp in movable:
            if self.is_balanced():
                break
            source = next(id for id, held in self.held.items() if tp in held)
            more_than = len(self.held[source]) - 1
            before = self.before.get(tp, "")
            # The owner in an earlier generation comes first, then the member with the fewest
            # partitions.
            if before in self.held and more_than > len(self.held[before]):
                self.move(tp, source, before)
            elif any(more_than > len(self.held[other]) for other in self.takers[tp]):
                self.move(tp, source, self.best_candidate(tp))
            else:
                continue
            has_moved = True
        return has_moved

    def move(self, tp: TopicPartition, source: str, target: str) -> None:
        """Move `tp` from `source` to `target`; or, instead of `tp`, move another partition back.

        The other partition has the topic of `tp`. It moves back to `target` if an earlier move took
        it from `target` to the member that owned `tp` before all moves.

        Source: reassignPartition, getTheActualPartitionToBeMoved of AbstractStickyAssignor.java
        (2.8).
        """
        origin = self.moved[tp][0] if tp in self.moved else source
        back = self.moved_along(tp.topic, (target, origin))
        actual = tp
        if back:
            actual = in_java_hash_map_order(back, self.most_moved[tp.topic, target, origin])[0]
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
            key = actual.topic, came_from, target
            count = len(self.moved_along(actual.topic, (came_from, target)))
            self.most_moved[key] = max(count, self.most_moved.get(key, 0))

    def moved_along(self, topic: str, way: tuple[str, str]) -> list[TopicPartition]:
        """Oldest move first; `way` is (from, to)."""
        return [tp for tp, taken in self.moved.items() if taken == way and tp.topic == topic]


def _by_generation(members: Members) -> dict[TopicPartition, list[str]]:
    """Return, by partition, the ids of the members that own it, the newest generation first.

    Of several owners in one generation only the first in `members` is listed, or the last if they
    have no generation.

    Source: prepopulateCurrentAssignments (2.8).
    """
    found: dict[TopicPartition, dict[int, str]] = {}
    for id, member in members.items():
        for tp in member.owned:
            claimants = found.setdefault(tp, {})
            # In one generation the member visited first counts, without a generation the member
            # visited last.
            if member.generation is None or member.generation not in claimants:
                claimants[UNKNOWN if member.generation is None else member.generation] = id
    in_order = in_java_hash_map_order(found)
    return {
        tp: [found[tp][number] for number in sorted(found[tp], reverse=True)] for tp in in_order
    }


def _score(held: Assignment) -> int:
    """The sum over all pairs of members of the difference of their partition counts."""
    sizes = [len(partitions) for partitions in held.values()]
    return sum(abs(one - other) for index, one in enumerate(sizes) for other in sizes[index + 1 :])


# ---------------------------------------------------------------- the two assignors


def assign_sticky(partitions: Partitions, members: Members) -> Assignment:
    """Return a balanced assignment that keeps as many owners as possible.

    `partitions` maps a topic to its number of partitions, `members` a member id to its
    subscription. Source: StickyAssignor.java, AbstractStickyAssignor.assign (2.8).
    """
    found = claims(partitions, members)
    if found.are_equal:
        return constrained(partitions, found)[0]
    # The user data of the members visited in `claims` have been read already, so they own nothing.
    unread = {id: Subscription(m.topics) if id in found.asked else m for id, m in members.items()}
    return GeneralAssignment(partitions, unread).run()


def assign_cooperative(partitions: Partitions, members: Members) -> Assignment:
    """Return the sticky assignment without the partitions that change their owner.

    `partitions` maps a topic to its number of partitions, `members` a member id to its
    subscription. Source: CooperativeStickyAssignor.assign, adjustAssignment (2.8).
    """
    found = claims(partitions, members)
    if found.are_equal:
        assigned, moving = constrained(partitions, found)
    else:
        claimants = [id for id in found.asked if members[id].generation is not None]
        lost = {id: members[id]._replace(generation=UNKNOWN) for id in claimants}
        assigned = GeneralAssignment(partitions, {**members, **lost}).run()
        rows = members.items()
        revoked = {tp for id, member in rows for tp in member.owned if tp not in assigned[id]}
        added = {
            tp: id for id, tps in assigned.items() for tp in tps if tp not in members[id].owned
        }
        moving = {tp: id for tp, id in added.items() if tp in revoked}
    return {id: [tp for tp in held if moving.get(tp) != id] for id, held in assigned.items()}


ASSIGNORS: dict[str, Assignor] = {
    "range": assign_range, "roundrobin": assign_round_robin, "sticky": assign_sticky,
    "cooperative-sticky": assign_cooperative,
}  # fmt: skip
