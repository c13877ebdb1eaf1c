"""Counts on Spark: journals and Kafka's own logs as tables."""
