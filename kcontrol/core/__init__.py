"""The values that all packages of kcontrol share: events, effects, rules, tables, znodes. No I/O.
"""
