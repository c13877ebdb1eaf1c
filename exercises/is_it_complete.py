"""Exercise: may a move be finished? Fill in about 2 lines, then check them with lab.check("is-it-complete", is_complete)."""


def is_complete(replicas, adding, removing, isr):
    """Whether a reassignment may be finished now: the assignment, what of it is added, what of it is removed, and the ISR.

    All four are lists of brokers. Where nothing is added and nothing removed there is nothing to wait for.
    """
    # FILL IN (about 2 lines)
