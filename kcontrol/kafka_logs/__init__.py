"""The lines of Kafka's logs as one table, `log_lines.tsv`: by it a run's log lines are written and brokers' logs are read."""
