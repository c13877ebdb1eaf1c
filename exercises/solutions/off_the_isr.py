"""Solution: the last member stays in the ISR, and all other replicas get LeaderAndIsr."""


def retire(broker, replicas, leader, isr):
    """Return (leader, isr, receivers) after this broker's replica is Offline, in 2.8."""
    left = [b for b in isr if b != broker] or isr
    receivers = [b for b in replicas if b != broker]
    return (-1 if broker == leader else leader), left, receivers
