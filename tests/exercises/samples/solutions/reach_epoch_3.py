"""An exercise for the tests."""

acts = [("kill", 1), ("start", 1), ("kill", 2)]
