"""An exercise for the tests."""

from kcontrol.core.model import LeaderAndIsr  # noqa: F401


def first_leader(ctx, tp, question):
    """Its first leadership, or why there is none."""
