"""Exercise: is a reassignment complete? Fill in about 2 lines, then exercises.check("is-it-complete", is_complete)."""


def is_complete(replicas, adding, removing, isr):
    """Return whether a reassignment may be completed now.

    The arguments are lists of brokers: the assignment, the replicas that are added, those that are removed, and the ISR. A
    reassignment that adds and removes no replica is complete.
    """
    # FILL IN (about 2 lines)
