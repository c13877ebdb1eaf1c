"""Exercise: the state after a crash. Fill in 1 or 2 lines, then check them with exercises.check("what-a-crash-leaves", holds)."""


def holds(run):
    """Return whether every broker in an ISR is one of the partition's replicas; called after every step of a run."""
    # FILL IN (1 or 2 lines)
