"""Solution: two brokers die, the session of the third expires, and the two start again."""

acts = [("kill", 1), ("kill", 2), ("expire_session", 3), ("start", 1), ("start", 2)]
