"""Solution: acknowledged by the leader alone, which dies before anybody has fetched it, and follows when it is back."""

acts = [("produce", 1, "t-0", "b", "1"), ("kill", 1), ("run",), ("start", 1)]
