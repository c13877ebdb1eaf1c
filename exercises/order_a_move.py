"""Exercise: from the kill to the first heartbeat. Order the letters, then exercises.check("order-a-move", answer)."""

answer = []  # FILL IN: 8 letters, as the notebook explains them
