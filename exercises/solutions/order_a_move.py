"""Solution: the controller's half first, then the load."""

answer = ["D", "H", "F", "B", "A", "G", "E", "C"]
