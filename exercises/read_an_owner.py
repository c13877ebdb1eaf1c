"""Exercise: which znodes does the session of broker 2 own? List the paths, then exercises.check("read-an-owner", paths)."""

paths = []  # in alphabetical order
