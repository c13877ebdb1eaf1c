"""Exercise: a new controller under 0.8.1 and under 2.8. Order the letters, then lab.check("order-two-failovers", orders)."""

# A  /controller is created
# B  the state znodes of the partitions are read
# C  replicas are told who leads (LeaderAndIsr)
# D  brokers are told the metadata in a request of its own (UpdateMetadata alone)
# E  preferred elections that were asked for are looked up
orders = {}  # {"0.8.1": [...], "2.8": [...]}
