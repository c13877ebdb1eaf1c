"""Exercise: where does the run go wrong? Fill in a number, then exercises.check("read-a-counterexample", answer)."""

answer = None  # FILL IN: the number of a step
