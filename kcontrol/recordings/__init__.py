"""Recordings of real brokers: their format, as journals, the player of their scenarios, and the comparison with a run."""
