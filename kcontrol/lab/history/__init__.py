"""The tables of a run's whole history, made record by record, without Spark."""
