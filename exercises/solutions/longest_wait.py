"""Solution: the greatest wait of each kind, of what was begun at all."""


def longest_wait(run):
    """For each kind of event that broker 1 has begun, by name, the longest time in ms that one waited; run.heard(1) has them."""
    begun = run.heard(1).dropna(subset=["waited_ms"])
    return begun.groupby("event")["waited_ms"].max().to_dict()
