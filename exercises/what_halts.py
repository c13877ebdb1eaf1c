"""Exercise: what stops each of three deletions? Then exercises.check("what-halts", halts)."""

halts = {}  # such as {"a": [1, "dead"]}: the broker that the topic waits for, and "dead", "error" or "silent"
