"""An exercise for the tests."""


def is_stale(seen, sent):
    """Whether a request of epoch `sent` comes too late for a broker that has `seen` another."""
    return sent < seen
