"""Functions that convert the facts in broker logs into the journal of a run, so that all tables and the viewer read logs.

Read first: `to_journal.py`.
"""
