"""Solution: the first broker of the assignment that is alive and in sync."""


def next_leader(assignment, isr, live):
    """Return the next leader, or None; the assignment has the preferred leader first."""
    for broker in assignment:
        if broker in isr and broker in live:
            return broker
    return None
