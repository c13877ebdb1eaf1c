"""Solution: the first live replica leads, the live replicas are the ISR, and without a live replica there is no leader."""

from kcontrol.core.model import LeaderAndIsr


def begin(ctx, tp, question):
    """Return LeaderAndIsr(leader, isr, leader epoch, zk version, controller epoch), or a text with the reason for a refusal."""
    live = ctx.online_replicas(tp)
    if not live:
        return "none of its replicas is alive"
    return LeaderAndIsr(live[0], live, 0, -1, ctx.controller_epoch)
