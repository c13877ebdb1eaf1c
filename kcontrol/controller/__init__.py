"""Decides the controller's reaction to each event.

Pure: no clock, randomness, threads, I/O or logging.

Read `event_thread.py` first: the page of 1.1 to 3.9 has every table of that design. Then read
`partition_machine.py` (its table), `broker_changes.py`, `controller_election.py` and
`failover_steps.py`. `design.py` declares the type of a design, and `handlers.py` picks the design
of a release. `earlier/` has the code that only earlier releases need; only `handlers.py` imports
it.
"""
