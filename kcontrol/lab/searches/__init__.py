"""Searches of a lab for a run that breaks a promise, and the museum of published bugs."""
