"""Exercise: bring the preferred leader back, if it can lead; then lab.check("preferred-leader", preferred)."""


def preferred(assignment, isr, live):
    """The broker that a preferred election makes the leader, or None where the election fails."""
    # FILL IN (about 3 lines)
