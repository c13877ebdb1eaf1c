"""Exercise: which replicas become Online? Fill in a list, then exercises.check("what-becomes-of-them", online)."""

online = []  # FILL IN: the replicas of broker 2 that are Online when the cluster is quiet, such as ["a-0@2"]
