"""Exercise: a new controller under 0.8.1 and under 2.8. Order them, then exercises.check("order-two-failovers", orders)."""

# A  /controller is created
# B  the state znodes of the partitions are read
# C  replicas get their leadership (LeaderAndIsr)
# D  brokers get the metadata in a batch without other requests (UpdateMetadata)
# E  requested preferred elections are read
orders = {}  # {"0.8.1": [...], "2.8": [...]}
