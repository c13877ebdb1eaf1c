"""Decides what a broker does as coordinator of consumer groups.

No clock, randomness, threads, I/O or logging; this package imports nothing of the controller.

Read `group_machine.py` first (the states of a group), then `request_reactions.py` (the reaction to
each request in each state), `rebalance.py` (how a generation begins), `joining.py` (JoinGroup),
`membership.py` (SyncGroup, Heartbeat, LeaveGroup), `offsets.py`, `offset_expiration.py` and
`group_loading.py`. `handlers.py` has the handler of each event.
"""
