"""The reference: the target is in the ISR, all of it."""


def is_complete(replicas, adding, removing, isr):
    """Whether a reassignment may be finished now."""
    moves = adding or removing
    return not moves or set(replicas) - set(removing) <= set(isr)
