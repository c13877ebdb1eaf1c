"""Solution: the znode with the greatest number below the number of my znode."""


def znode_to_watch(mine, names):
    """Return the znode to watch, None if the lock is mine; `names` has names such as "7f2a-lock-0000000004", in any order."""
    before = [name for name in names if name[-10:] < mine[-10:]]
    return max(before, key=lambda name: name[-10:], default=None)
