"""Solution: members keep their partitions; free and surplus partitions, the slowest first, go to the member with least lag."""


def assign(partitions, members, lags):
    """Return a dict with the list of partitions of each member: few moves, and a small greatest lag.

    `lags` has the number of unread records of each partition; `members[name].owned` are the partitions that a member owns.
    """

    def load(held):
        return len(held), sum(lags[tp] for tp in held)

    assigned = {name: list(members[name].owned) for name in sorted(members)}
    owned = {tp for held in assigned.values() for tp in held}
    for tp in sorted(lags.keys() - owned, key=lambda tp: (-lags[tp], tp)):
        min(assigned.values(), key=load).append(tp)
    while max(map(len, assigned.values())) - min(map(len, assigned.values())) > 1:
        most, least = max(assigned.values(), key=load), min(assigned.values(), key=load)
        least.append(most.pop(most.index(max(most, key=lags.get))))
    return assigned
