"""Solution: each member gets the quotient, and the first members by name get one partition more."""


def assign_range(partitions, members):
    """Return a dict with the list of partition numbers of each member.

    `partitions` is how many there are, numbered from 0; `members` is a list of names in any order.
    """
    each, more = divmod(partitions, len(members))
    assigned, start = {}, 0
    for place, name in enumerate(sorted(members)):
        end = start + each + (place < more)
        assigned[name], start = list(range(start, end)), end
    return assigned
