"""Searches for a run that breaks a promise, searches for a run with a condition, and the museum of published bugs."""
