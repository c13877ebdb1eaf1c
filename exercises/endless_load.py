"""Exercise: why do the members make no progress? Look at the run, then exercises.check("endless-load", answer)."""

answer = []  # FILL IN: the broker, the event that its scheduler has not finished, the code of the JoinGroup of dora
