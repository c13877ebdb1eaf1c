"""Solution: the broker that has been in sync longest, because a broker that comes back joins the end of the ISR."""


def steady(assignment, isr, live):
    """Return the next leader, or None; a broker that fails often should not be chosen often."""
    for broker in isr:
        if broker in live:
            return broker
    return None
