"""Solution: each ISR is a part of the assignment."""


def holds(run):
    """Return whether every broker in an ISR is one of the partition's replicas; called after every step of a run."""
    return all(set(row.isr) <= set(row.replicas) for row in run.partitions().itertuples())
