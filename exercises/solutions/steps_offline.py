"""Solution: the outages of a partition, added up."""


def steps_offline(moment):
    """For each partition that was ever without a leader, by name, for how many steps in all; moment.outages() has the table."""
    table = moment.outages()
    return table.groupby("partition")["steps"].sum().to_dict()
