"""Exercise: a rule that moves leaders as rarely as can be. Fill in, then lab.check("fewest-moves", steady)."""


def steady(assignment, isr, live):
    """The broker that leads next, or None; a broker that fails often should not be chosen often."""
    # FILL IN (1 to 5 lines)
