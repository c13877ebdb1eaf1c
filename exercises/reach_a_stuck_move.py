"""Exercise: a reassignment that never ends. Write about 2 acts, then exercises.check("reach-a-stuck-move", acts)."""

# t-0 is on brokers 1 and 2; ("reassign", {"t-0": [2, 3]}) requests a reassignment to 2 and 3. The other acts are ("kill", 1) and
# ("start", 1). After each act the cluster comes to rest.
acts = []
