"""Exercise: which caches are stale? Fill in a dict, then check it with exercises.check("stale-caches", stale)."""

stale = {}  # FILL IN: {"1 metadata": "waits", ...}: "waits" if a request waits in its channel, else "not sent"
