"""Solution: read, tell the others, tell it, give it its replicas, then elect."""

order = ["E", "C", "B", "D", "A"]
