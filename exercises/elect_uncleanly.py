"""Exercise: have broker 2 lead t-0 alone, by an unclean election. Write the acts, then lab.check("elect-uncleanly", acts)."""

# Such as ("kill", 1) or ("start", 1); the cluster comes to rest after each act.
acts = []
