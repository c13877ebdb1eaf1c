"""Solution: the head of the assignment, and nobody else."""


def preferred(assignment, isr, live):
    """The broker that a preferred election makes the leader, or None where the election fails."""
    first = assignment[0]
    if first in isr and first in live:
        return first
    return None
