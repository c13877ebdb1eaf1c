"""Solution: the first broker of the assignment, and no other broker."""


def preferred(assignment, isr, live):
    """Return the leader after a preferred election, or None if the election fails."""
    first = assignment[0]
    if first in isr and first in live:
        return first
    return None
