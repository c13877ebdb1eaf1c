"""Solution: whoever comes right before."""


def whom_to_watch(mine, names):
    """The name whose end is my turn, None if the lock is mine; names are such as "7f2a-lock-0000000004", in any order."""
    before = [name for name in names if name[-10:] < mine[-10:]]
    return max(before, key=lambda name: name[-10:], default=None)
