"""Search through all orders of a cluster's actions for a shortest run that breaks an invariant.

A driver is the object that runs the handlers of one broker. To make the search fast, each call of a driver is performed once per
state; a later call in an equal state gets the stored result.
"""
