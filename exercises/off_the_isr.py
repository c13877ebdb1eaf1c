"""Exercise: a replica goes Offline. Fill in about 3 lines, then check them with exercises.check("off-the-isr", retire)."""


def retire(broker, replicas, leader, isr):
    """Return (leader, isr, receivers) after this broker's replica is Offline, in 2.8.

    `replicas` is the assignment, `leader` and `isr` are in the state znode; no leader is -1. The receivers are the brokers that
    LeaderAndIsr is for, dead or alive; it is not sent to dead brokers.
    """
    # FILL IN (about 3 lines)
