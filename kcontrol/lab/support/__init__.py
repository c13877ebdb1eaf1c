"""Checks of arguments, settings from arguments, printed output, and errors, for the other modules of the lab."""
