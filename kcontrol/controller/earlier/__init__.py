"""Holds the code of the controller that only releases before 2.6 need.

Kafka's controller had listeners that share one lock (0.8.0 to 0.10.2), then one event thread that
ZkClient's listeners feed (0.11 and 1.0). A page is a module with all tables of such a controller.

`listeners_to_0_10.py` is the page of 0.8.0 to 0.10.2, and `event_queue_0_11.py` the page of 0.11
and 1.0. `event_thread_to_2_5.py` has the changes that 1.1 to 2.5 make to the page of the event
thread. Only `../handlers.py` imports this package.
"""
