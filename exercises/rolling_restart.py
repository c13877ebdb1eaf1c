"""Exercise: restart three brokers without an offline window. Write the acts, then exercises.check("rolling-restart", acts)."""

# Acts such as ("terminate", 1), ("kill", 1), ("start", 1); ("run",) lets the cluster come to rest, and does not count.
acts = []
