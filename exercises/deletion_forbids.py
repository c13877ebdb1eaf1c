"""Exercise: what does a deletion forbid? Fill in about 5 lines, then exercises.check("deletion-forbids", holds)."""


def holds(run):
    """Return whether no replica went from DeletionStarted or DeletionSuccessful to Online; called after every step of a run."""
    # FILL IN (about 5 lines)
