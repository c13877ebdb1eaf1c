"""An exercise for the tests."""


def is_stale(seen, told):
    """Whether a request of epoch `told` comes too late for a broker that has `seen` another."""
