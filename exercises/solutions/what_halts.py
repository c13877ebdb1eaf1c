"""Solution: one log directory has failed, one broker is dead, one is alive and does not answer."""

halts = {"a": [3, "error"], "b": [4, "dead"], "c": [5, "silent"]}
