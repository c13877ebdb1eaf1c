"""Random requests on Kafka's own coordinator classes and on ours: `python -m tests.group.differential`.

`generate.py` makes a sequence of steps by playing it on our coordinator (`ours.py`), so that its clients know their member ids
and generations. `kafka.py` plays the sequence on the classes of an official release, `compare.py` compares every answer, record,
state and timer after each step, `shrink.py` makes a sequence that differs shorter, and `cases.py` keeps it and plays it again
without Java.
"""
