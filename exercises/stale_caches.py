"""Exercise: which caches are stale? Fill in a dict, then check it with lab.check("stale-caches", stale)."""

stale = {}  # FILL IN: {"1 metadata": "waits", ...}: "waits" where a request is on its way, else "not told"
