"""The reference."""


def retire(broker, replicas, leader, isr):
    """(leader, isr, told) once this broker's replica is Offline, in 2.8."""
    left = [b for b in isr if b != broker] or isr
    told = [b for b in replicas if b != broker]
    return (-1 if broker == leader else leader), left, told
