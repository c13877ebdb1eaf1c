"""Solution: one log directory has failed, one broker is dead, and one live broker sends no response."""

halts = {"a": [3, "error"], "b": [4, "dead"], "c": [5, "silent"]}
