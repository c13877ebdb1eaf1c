"""The values that all packages share, and functions that build, encode and decode them. No I/O.

The values are events, effects (what a handler yields), rules (differences between Kafka's
releases), transition tables, and the contents of znodes.
"""
