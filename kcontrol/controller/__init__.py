"""Decides the controller's reaction to each event, in handlers: generators that yield effects.

Kafka has built its controller three times; each design is a value with its threads, handlers,
watches and failover steps. Read `event_thread.py` first, then `partition_machine.py` and
`broker_changes.py`.
"""
