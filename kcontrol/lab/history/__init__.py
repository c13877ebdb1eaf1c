"""Makes the tables of a run's whole history from its journal, record by record, without Spark.

These tables exist twice, on purpose: as SQL for Spark (`pipeline/sql`) and as functions that follow the journal of one run record
by record. An embedded engine for the same SQL would repeat each error of the SQL; two derivations with nothing in common but the
names of columns check each other, cell by cell, in `tests/pipeline/test_run_tables.py`.
"""
