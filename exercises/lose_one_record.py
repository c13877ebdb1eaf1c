"""Exercise: lose exactly one acknowledged record for ever. Write the acts, then exercises.check("lose-one-record", acts)."""

# The acts: ("kill", 1), ("start", 1), ("produce", 1, "t-0", "b", "all") and ("produce", 1, "t-0", "b", "1"). The last two send a
# record to broker 1, with acks=all or acks=1. The cluster comes to rest only at ("run",), which does not count as an act.
acts = []
