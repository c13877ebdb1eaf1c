"""Solution: only the leader has the acknowledged record; it dies before a fetch, starts again, and becomes a follower."""

acts = [("produce", 1, "t-0", "b", "1"), ("kill", 1), ("run",), ("start", 1)]
