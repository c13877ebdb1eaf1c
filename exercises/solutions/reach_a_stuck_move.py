"""The reference: who stays has to be in sync as well, and only who is added has to be alive when the request is made."""

acts = [("kill", 2), ("reassign", {"t-0": [2, 3]})]
