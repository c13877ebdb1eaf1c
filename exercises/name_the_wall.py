"""Exercise: which record first stops broker 1, which has been replaced? Then exercises.check("name-the-wall", record)."""

record = ""
