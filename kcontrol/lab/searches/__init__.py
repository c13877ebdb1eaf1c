"""Searches for a run that breaks a promise, a condition on the states of a cluster, and the museum of published bugs."""
