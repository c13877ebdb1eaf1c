"""Journals: records, files of records, and the state after any record.

Notebooks use `read` and `write`, which read and write the file of a journal.
"""

from kcontrol.journal.journal_file import read, write

__all__ = ["read", "write"]
