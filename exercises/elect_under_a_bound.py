"""Exercise: a rule for random failures. Fill in, then exercises.check("elect-under-a-bound", elect)."""


def elect(assignment, isr, live):
    """Return the next leader, or None; the time without a leader may be 5 % above that of Kafka's rule."""
    # FILL IN (1 to 4 lines)
