"""The two designs before the event thread, with all code that only releases before 2.6 need.

`listeners_to_0_10.py` is the page of 0.8.0 to 0.10.2, and `event_queue_0_11.py` the page of 0.11
and 1.0. `event_thread_to_2_5.py` has the changes that 1.1 to 2.5 make to the page of the event
thread. Only `../handlers.py` imports this package.
"""
