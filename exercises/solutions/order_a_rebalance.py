"""Solution: 2.8 first gives out a member id, and waits for the initial delay; 0.9 does neither."""

orders = {"0.9": ["D", "A", "E", "C"], "2.8": ["F", "D", "B", "A", "E", "C"]}
