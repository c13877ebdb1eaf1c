"""Solution: one controlled shutdown after the other, each broker in sync again before the next, the controller last."""

acts = [
    ("terminate", 2), ("run",), ("start", 2), ("run",),
    ("terminate", 3), ("run",), ("start", 3), ("run",),
    ("terminate", 1), ("run",), ("start", 1), ("run",),
]  # fmt: skip
