"""Holds the code of the controller that only releases before 2.6 need.

The tables of a controller are in `listeners_to_0_10.py` (0.8.0 to 0.10.2) and `event_queue_0_11.py`
(0.11, 1.0). `event_thread_to_2_5.py` has what 1.1 to 2.5 change in the tables of
`../event_thread.py`.
"""
