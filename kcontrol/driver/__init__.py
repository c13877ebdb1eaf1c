"""Runs the handlers of a broker, and performs the effects that the handlers yield.

The modules queue events, perform round trips to ZooKeeper and fenced writes, change the contexts,
and write the journal records of all that.
"""
