"""An exercise for the tests."""


def changes(moment):
    """How many decisions about t-0 came after the first."""
