"""Runs the handlers of a broker, and performs what they yield.

The modules queue events, perform round trips to ZooKeeper and fenced writes, change the contexts,
and write the journal records of all that.
"""
