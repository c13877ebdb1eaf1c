"""Solution: the read, the write, then the requests; a batch is sent kind by kind."""

order = ["D", "B", "E", "C", "A"]
