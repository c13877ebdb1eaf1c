"""Decides: what the controller does about each event. Pure: no clock, randomness, threads, I/O or logging.

Read `partition_machine.py` first, then `broker_changes.py`, then `leadership.py`.
"""
