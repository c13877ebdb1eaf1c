"""Exercise: which record shows broker 1 that it has been replaced? Then lab.check("name-the-wall", record)."""

record = ""
