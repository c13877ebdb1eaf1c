"""Exercise: remove a healthy member. Write at most 4 acts, then exercises.check("reach-a-healthy-removal", acts)."""

# anna, bert and cleo are in a Stable group of 0.9, and anna leads. Acts: ("heartbeat", "cleo") and the other requests
# "join", "sync", "leave"; ("fire_timer", 2, timer) lets time pass until a timer of broker 2
# fires. lab.tables.timers() lists them.
acts = []
