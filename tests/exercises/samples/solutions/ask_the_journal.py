"""An exercise for the tests."""


def changes(moment):
    """How many decisions about t-0 came after the first."""
    return moment.partitions().leader_epoch["t-0"]
