"""Decides: what the controller does about each event. Pure: no clock, randomness, threads, I/O or logging.

Read `partition_machine.py` first, then `handlers.py` (what leads where), `broker_changes.py`, `controller_election.py` and
`failover_and_resignation.py`. What ends in `_0_8` is the design of listeners and one lock, what ends in `_1_0` that of
listeners and one event thread.
"""
