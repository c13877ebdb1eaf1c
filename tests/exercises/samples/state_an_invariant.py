"""An exercise for the tests."""


def leader_is_in_sync(moment):
    """True while it holds."""
