"""Segments of `__consumer_offsets` as tables.

`segments.py` reads the records of a segment file, batch by batch; `offset_tables.py` writes the tables.
"""
