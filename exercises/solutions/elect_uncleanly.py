"""Solution: the follower goes first, then the leader; then the follower is back alone."""

acts = [("kill", 2), ("kill", 1), ("start", 2)]
