"""The reference: two die, the survivor loses its session, and the dead come back."""

acts = [("kill", 1), ("kill", 2), ("expire", 3), ("start", 1), ("start", 2)]
