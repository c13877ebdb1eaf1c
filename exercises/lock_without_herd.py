"""Exercise: a lock that wakes one client. Fill in about 4 lines, then exercises.check("lock-without-herd", znode_to_watch)."""


def znode_to_watch(mine, names):
    """Return the znode to watch, None if the lock is mine; `names` has names such as "7f2a-lock-0000000004", in any order."""
    # FILL IN (about 4 lines)
