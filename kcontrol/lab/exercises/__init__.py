"""Lists the exercises and the questions for learners, and checks answers to them in a process of their own."""
