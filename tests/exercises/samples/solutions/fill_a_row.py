"""An exercise for the tests."""

from kcontrol.core.model import LeaderAndIsr


def first_leader(ctx, tp, question):
    """Its first leadership, or why there is none."""
    live = ctx.online_replicas(tp)
    if not live:
        return "no replica is alive"
    return LeaderAndIsr(live[0], tuple(live), 0, -1, ctx.controller_epoch)
