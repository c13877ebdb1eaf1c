"""Exercise: what does a deletion forbid? Fill in about 5 lines, then lab.check("deletion-forbids", holds)."""


def holds(run):
    """Whether nothing of what was being deleted, or is deleted, was Online next; asked after every step of a run."""
    # FILL IN (about 5 lines)
