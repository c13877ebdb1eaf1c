"""Exercise: a controller's session expires. Order the letters, then lab.check("order-expire-register-reelect", orders)."""

# A  it resigns, and forgets the states of all partitions
# B  another session is open
# C  /brokers/ids/1 is created
# D  it creates /controller
orders = {}  # {"0.8.1": [...], "2.8": [...]}
