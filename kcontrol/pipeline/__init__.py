"""Converts journals of runs, broker logs, and segments of the offsets topic into Spark tables and Parquet files."""
