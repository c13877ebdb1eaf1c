"""Exercise: a lock that wakes one. Fill in about 4 lines, then check them with lab.check("lock-without-herd", whom_to_watch)."""


def whom_to_watch(mine, names):
    """The name whose end is my turn, None if the lock is mine; names are such as "7f2a-lock-0000000004", in any order."""
    # FILL IN (about 4 lines)
