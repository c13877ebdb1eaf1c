"""Decides a broker's responses to controllers, and its logs' changes: no I/O, clock or threads."""
