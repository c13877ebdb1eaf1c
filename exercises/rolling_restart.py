"""Exercise: restart three brokers without a gap. Write the acts, then lab.check("rolling-restart", acts)."""

# Such as ("term", 1), ("kill", 1), ("start", 1); ("run",) lets the cluster come to rest, and costs nothing.
acts = []
