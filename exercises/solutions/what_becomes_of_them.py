"""Solution: all replicas but that of topic b, which is deleted now."""

online = ["a-0@2", "c-0@2", "d-0@2", "e-0@2"]
