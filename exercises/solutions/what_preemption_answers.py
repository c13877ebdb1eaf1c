"""Solution: no response to a preempted request has an empty body."""


def responds_to_all(run):
    """Return whether every request that was preempted in a controller's queue has a response; called after every step."""
    preempted = {r.id for r in run.records if r.kind == "preempt"}
    return all(r.fields["body"] is not None for r in run.records if r.kind == "respond" and r.cause in preempted)
