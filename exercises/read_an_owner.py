"""Exercise: what goes with the session of broker 2? List the paths, then lab.check("read-an-owner", paths)."""

paths = []  # in the order of the alphabet
