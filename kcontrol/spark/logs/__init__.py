"""Broker logs of Kafka as Spark tables: the records of the log files, and the lines that are no part of a record."""
