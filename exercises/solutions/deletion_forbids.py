"""Solution: compare each transition to Online with the replica's last target state."""

GOING = {"ReplicaDeletionStarted", "ReplicaDeletionSuccessful"}


def holds(run):
    """Return whether no replica went from DeletionStarted or DeletionSuccessful to Online; called after every step of a run."""
    last = {}
    for move in (r.fields for r in run.records if r.kind == "change"):
        name, target = str(move["subject"]), str(move["target"])
        if target == "OnlineReplica" and last.get(name) in GOING:
            return False
        last[name] = target
    return True
