"""Solution: first the steps of the controller, from the kill to LeaderAndIsr, then the load of the group from its log."""

answer = ["D", "H", "F", "B", "A", "G", "E", "C"]
