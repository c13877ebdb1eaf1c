"""Decides: what a broker does as coordinator of consumer groups. Pure: no clock, randomness, threads, I/O or logging.

Read `group_machine.py` first, then `rebalance.py` (how a generation comes about), `joining.py`, `membership.py` (sync, heartbeat,
leave), `offsets.py`, `expiry.py` and `loading.py`; `handlers.py` says which handler answers which event. It knows nothing of the
controller.
"""
