"""The reference."""

from kcontrol.model import LeaderAndIsr


def begin(ctx, tp, question):
    """LeaderAndIsr(leader, isr, leader epoch, zk version, controller epoch), or why not."""
    live = ctx.online_replicas(tp)
    if not live:
        return "none of its replicas is alive"
    return LeaderAndIsr(live[0], live, 0, -1, ctx.controller_epoch)
