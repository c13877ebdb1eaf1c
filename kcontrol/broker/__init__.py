"""Decides how a broker responds to a controller's requests, and how its replicas' logs change.

The functions here use no I/O, clock, randomness or threads.
"""
