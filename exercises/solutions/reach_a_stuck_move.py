"""Solution: a replica that stays has to be in sync too, but only an added one has to be alive at the time of the request."""

acts = [("kill", 2), ("reassign", {"t-0": [2, 3]})]
