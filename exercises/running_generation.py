"""Exercise: which request ends each generation? Then exercises.check("running-generation", ends)."""

# exercises.incident("running-generation") has the run: group billing under 2.8. One pair for each generation that ended.
ends = []  # [("anna", "JoinGroup"), ...]
