"""Exercise: from JoinGroup to Stable. Order the steps, then exercises.check("order-a-rebalance", orders)."""

# A  the generation of the group grows by one
# B  the timer of the initial delay fires
# C  the assignment is appended to __consumer_offsets
# D  the group enters PreparingRebalance
# E  the SyncGroup of the group leader is parked
# F  a response has the error MEMBER_ID_REQUIRED
orders = {}  # {"0.9": [...], "2.8": [...]}: a letter only where the release has the step
