"""Search through all orders of a cluster's actions for a shortest run that breaks an invariant."""
