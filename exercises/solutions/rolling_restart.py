"""Solution: one controlled shutdown after the other, each broker in sync again before the next, the controller last."""

acts = [
    ("term", 2), ("run",), ("start", 2), ("run",),
    ("term", 3), ("run",), ("start", 3), ("run",),
    ("term", 1), ("run",), ("start", 1), ("run",),
]  # fmt: skip
