"""Exercise: what does 2.8 keep and 0.8.1 break? Fill in about 2 lines, then exercises.check("state-a-new-promise", holds)."""


def holds(run):
    """Return whether the promise is kept now; called after every step of a run."""
    # FILL IN (about 2 lines)
