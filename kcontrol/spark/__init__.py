"""Journals as Spark tables."""
