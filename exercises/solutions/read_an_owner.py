"""Solution: what says that it is there, and that it rules."""

paths = ["/brokers/ids/2", "/controller"]
