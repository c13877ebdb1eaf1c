"""An exercise for the tests."""


def leader_is_in_sync(moment):
    """True while it holds."""
    rows = moment.partitions().dropna(subset="leader").itertuples()
    return all(row.leader == -1 or row.leader in row.isr for row in rows)
