"""Solution: whoever has been in sync longest. A broker that comes back joins the end of the ISR."""


def steady(assignment, isr, live):
    """The broker that leads next, or None; a broker that fails often should not be chosen often."""
    for broker in isr:
        if broker in live:
            return broker
    return None
