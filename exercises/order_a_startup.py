"""Exercise: what happens when broker 2 starts again? Order the letters, then exercises.check("order-a-startup", order)."""

# A  u-0, whose only replica is on broker 2, gets its leader back
# B  broker 2 gets the metadata of all partitions (UpdateMetadata)
# C  the other brokers get the new list of live brokers (UpdateMetadata)
# D  broker 2 gets LeaderAndIsr for its replicas
# E  the controller reads the registrations of all brokers
order = []
