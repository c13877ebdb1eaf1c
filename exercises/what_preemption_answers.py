"""Exercise: responses to preempted requests. Fill in about 3 lines, then exercises.check("what-preemption-answers", told)."""


def told(run):
    """Return whether every request that was preempted in a controller's queue has a response; called after every step."""
    # FILL IN (about 3 lines)
