"""Functions that convert what broker logs say into the journal of a run, so that all tables and the viewer read logs.

Read first: `to_journal.py`.
"""
