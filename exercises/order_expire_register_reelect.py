"""Exercise: a controller's session expires. Order the letters, then exercises.check("order-expire-register-reelect", orders)."""

# A  broker 1 resigns, and clears the states of all partitions
# B  broker 1 has a new session
# C  /brokers/ids/1 is created
# D  broker 1 creates /controller
orders = {}  # {"0.8.1": [...], "2.8": [...]}
