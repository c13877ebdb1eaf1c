"""Solution: 0.8.1 hears of it afterwards and registers last, 2.8 hears of it before and registers first."""

orders = {"0.8.1": ["B", "A", "D", "C"], "2.8": ["A", "B", "C", "D"]}
