"""Exercise: a rule with as few changes of leaders as possible. Fill in, then exercises.check("fewest-moves", steady)."""


def steady(assignment, isr, live):
    """Return the next leader, or None; a broker that fails often should not be chosen often."""
    # FILL IN (1 to 5 lines)
