"""Solution: 0.8.1 resigns in the new session and registers last; 2.8 resigns before it, and registers before it competes."""

orders = {"0.8.1": ["B", "A", "D", "C"], "2.8": ["A", "B", "C", "D"]}
