"""Makes the tables of a run's whole history from its journal, record by record, without Spark."""
