"""Decides a broker's responses to controllers, and the changes of its logs. Pure."""
