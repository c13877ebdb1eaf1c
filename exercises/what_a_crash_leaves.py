"""Exercise: what a crash may leave. Fill in 1 or 2 lines, then check them with lab.check("what-a-crash-leaves", holds)."""


def holds(run):
    """Whether every broker that is in sync for a partition is one of its replicas; asked after every step of a run."""
    # FILL IN (1 or 2 lines)
