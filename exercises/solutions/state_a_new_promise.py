"""Solution: in 2.8 the last member stays in the ISR, even if its broker ends."""


def holds(run):
    """Return whether the promise is kept now; called after every step of a run."""
    return all(len(isr) > 0 for isr in run.partitions()["isr"].dropna())
