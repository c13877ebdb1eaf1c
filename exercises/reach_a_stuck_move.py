"""Exercise: a move that never ends, though who is new is in sync. About 2 acts, then lab.check("reach-a-stuck-move", acts)."""

# t-0 is on brokers 1 and 2, and is to be on 2 and 3. ("reassign", {"t-0": [2, 3]}) asks for that; there are ("kill", 1) and
# ("start", 1) too. After each act the cluster comes to rest.
acts = []
