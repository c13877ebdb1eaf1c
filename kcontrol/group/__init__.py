"""Decides what a broker does as coordinator of consumer groups, in handlers that yield effects.

Read `group_machine.py` first (the states of a group), then `request_reactions.py` (the reaction to
each request in each state), `rebalance.py`, `joining.py`, `membership.py` and `offsets.py`.
"""
