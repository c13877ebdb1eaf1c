"""Solution: compare the partitions that are New with those that were ever Online."""


def holds(run):
    """Return whether no partition that has ever had a leader is New now; called after every step of a run."""
    moves = [r.fields for r in run.records if r.kind == "change"]
    led = {str(f["subject"]) for f in moves if str(f["target"]) == "OnlinePartition"}
    return not led & set(run.partitions().query("state == 'NewPartition'").index)
