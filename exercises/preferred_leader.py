"""Exercise: elect the preferred leader, if it can lead; then exercises.check("preferred-leader", preferred)."""


def preferred(assignment, isr, live):
    """Return the leader after a preferred election, or None if the election fails."""
    # FILL IN (about 3 lines)
