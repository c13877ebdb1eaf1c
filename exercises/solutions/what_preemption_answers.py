"""Solution: no answer to what was thrown out is empty."""


def told(run):
    """Whether everybody whose request was thrown out of a controller's queue has an answer; asked after every step of a run."""
    thrown_out = {r.id for r in run.records if r.kind == "preempt"}
    return all(r.fields["body"] is not None for r in run.records if r.kind == "respond" and r.cause in thrown_out)
