"""Solution: the whole target is in the ISR."""


def is_complete(replicas, adding, removing, isr):
    """Return whether a reassignment may be completed now."""
    moves = adding or removing
    return not moves or set(replicas) - set(removing) <= set(isr)
