"""The reference."""


def holds(run):
    """Whether no partition that has ever had a leader is New now; asked after every step of a run."""
    moves = [r.fields for r in run.records if r.kind == "change"]
    led = {str(f["subject"]) for f in moves if str(f["target"]) == "OnlinePartition"}
    return not led & set(run.partitions().query("state == 'NewPartition'").index)
