"""Solution: 0.8.1 sends UpdateMetadata after LeaderAndIsr, 2.8 sends it before."""

orders = {"0.8.1": ["A", "B", "E", "C", "D"], "2.8": ["A", "B", "D", "C", "E"]}
