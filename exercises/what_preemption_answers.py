"""Exercise: responses to preempted requests. About 3 lines, then exercises.check("what-preemption-answers", responds_to_all)."""


def responds_to_all(run):
    """Return whether every request that was preempted in a controller's queue has a response; called after every step."""
    # FILL IN (about 3 lines)
