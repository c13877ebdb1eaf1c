"""Solution: 0.8.1 tells everybody last, 2.8 tells everybody first."""

orders = {"0.8.1": ["A", "B", "E", "C", "D"], "2.8": ["A", "B", "D", "C", "E"]}
