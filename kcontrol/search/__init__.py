"""Search through all orders of a cluster's actions for a shortest run that breaks an invariant.

To make the search fast, each call of a driver, which runs a broker's handlers, is performed once per state and then repeated.
"""
