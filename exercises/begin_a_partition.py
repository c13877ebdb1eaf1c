"""Exercise: the move from New to Online. Fill in about 4 lines, then check them with lab.check("begin-a-partition", begin).

ctx.replicas(tp) is the assignment, ctx.online_replicas(tp) those of it that are alive, both in its order; the zk version is -1.
"""

from kcontrol.model import LeaderAndIsr  # noqa: F401


def begin(ctx, tp, question):
    """LeaderAndIsr(leader, isr, leader epoch, zk version, controller epoch), or why not."""
    # FILL IN (about 4 lines)
