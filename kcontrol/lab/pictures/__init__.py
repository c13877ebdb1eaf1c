"""Draws pictures of a run, and of the controller's tables of events, watches and steps of an election."""
