"""Solution: the longest wait of each event that a handler has begun."""


def longest_wait(run):
    """Return a dict from each event that broker 1 has begun to its longest wait in ms; see run.tables.watch_events(1)."""
    begun = run.tables.watch_events(1).dropna(subset=["waited_ms"])
    return begun.groupby("event")["waited_ms"].max().to_dict()
