"""Draws pictures of a run, and of the controller's tables of events, of watches and of the steps of a controller election."""
