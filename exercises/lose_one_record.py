"""Exercise: lose exactly one acknowledged record for good. Write the acts, then lab.check("lose-one-record", acts)."""

# ("kill", 1), ("start", 1), and ("produce", 1, "t-0", "b", "all") or ("produce", 1, "t-0", "b", "1"): a record to broker 1, and
# whether all in sync have to have it before it is acknowledged. The cluster rests only where you write ("run",), which is free.
acts = []
