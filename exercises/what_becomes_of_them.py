"""Exercise: what becomes of these replicas? Fill in a list, then check it with lab.check("what-becomes-of-them", online)."""

online = []  # FILL IN: the replicas of broker 2 that are Online when all is quiet, such as ["a-0@2"]
