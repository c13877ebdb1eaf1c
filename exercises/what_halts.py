"""Exercise: what holds up each of three deletions? Then lab.check("what-halts", halts)."""

halts = {}  # such as {"a": [1, "dead"]}: the broker on which the topic waits, and "dead", "error" or "silent"
