"""The reference."""

GOING = {"ReplicaDeletionStarted", "ReplicaDeletionSuccessful"}


def holds(run):
    """Whether nothing of what was being deleted, or is deleted, was Online next; asked after every step of a run."""
    last = {}
    for move in (r.fields for r in run.records if r.kind == "change"):
        name, target = str(move["subject"]), str(move["target"])
        if target == "OnlineReplica" and last.get(name) in GOING:
            return False
        last[name] = target
    return True
