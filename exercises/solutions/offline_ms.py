"""Solution: the offline windows of a partition, added up."""


def offline_ms(moment):
    """Return a dict from each partition to the length in ms of all its offline windows; see moment.tables.offline_windows()."""
    table = moment.tables.offline_windows()
    return table.groupby("partition")["duration_ms"].sum().to_dict()
