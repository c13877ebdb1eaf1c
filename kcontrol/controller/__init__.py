"""Decides the controller's reaction to each event, as handlers: generators that yield effects.

The code uses no clock, randomness, threads, I/O or logging. Kafka has built its controller three
times; each of these designs is a value that has its threads, handlers, watches and failover steps.

Read `event_thread.py` first, which has the tables of the design of 1.1 to 3.9. Then read
`partition_machine.py` (its table), `broker_changes.py`, `controller_election.py` and
`failover_steps.py`. `design.py` declares the type of a design, and `handlers.py` picks the design
of a release. `earlier/` has the code that only earlier releases need; only `handlers.py` imports
it.
"""
