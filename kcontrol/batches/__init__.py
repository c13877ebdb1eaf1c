"""Writes the bytes of record batches and messages as a broker has them in a file of a log, compressed or not."""
