"""Exercise: to Offline. Fill in about 3 lines, then check them with lab.check("off-the-isr", retire)."""


def retire(broker, replicas, leader, isr):
    """(leader, isr, told) once this broker's replica is Offline, in 2.8.

    `replicas` is the assignment, `leader` and `isr` are what the state znode says; nobody is -1. `told` lists those whom
    LeaderAndIsr is for, dead or alive: whoever is dead is passed over when it is sent.
    """
    # FILL IN (about 3 lines)
