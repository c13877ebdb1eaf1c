"""The values that all packages share, and functions that build, encode and decode them. No I/O.

The values are events, effects, rules, transition tables, and the contents of znodes.
"""
