"""The reference."""


def holds(run):
    """Whether every broker that is in sync for a partition is one of its replicas; asked after every step of a run."""
    return all(set(row.isr) <= set(row.replicas) for row in run.partitions().itertuples())
