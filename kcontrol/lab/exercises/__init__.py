"""Lists the exercises and the questions for learners, and checks an answer to an exercise in a separate process."""
