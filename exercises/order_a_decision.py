"""Exercise: order a controlled shutdown. Fill in the list, then check it with exercises.check("order-a-decision", order).

Broker 3, a follower of t-0, does a controlled shutdown, and its replica is removed from the ISR. A: StopReplica is sent. B: the
state znode is written. C: UpdateMetadata is sent. D: the state znode is read. E: LeaderAndIsr is sent.
"""

order = []  # FILL IN: five letters
