"""Journals of runs as Spark tables, in memory and as Parquet files."""
