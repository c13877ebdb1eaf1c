"""Solution: the registration of broker 2, and /controller."""

paths = ["/brokers/ids/2", "/controller"]
