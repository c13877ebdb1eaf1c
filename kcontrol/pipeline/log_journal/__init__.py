"""Functions that convert what broker logs say into the journal of a run, so that the viewer and all tables work for logs too.

Read first: `to_journal.py`.
"""
