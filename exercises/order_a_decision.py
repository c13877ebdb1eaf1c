"""Exercise: a goodbye, what comes first? Fill in the list, then check it with lab.check("order-a-decision", order).

Broker 3 says goodbye; it follows t-0, and its replica is taken out of the ISR. A: StopReplica goes out. B: the state znode is
written. C: UpdateMetadata goes out. D: the state znode is read. E: LeaderAndIsr goes out.
"""

order = []  # FILL IN: five letters
