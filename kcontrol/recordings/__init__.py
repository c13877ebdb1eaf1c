"""Reads recordings of real brokers, converts them into journals, plays their scenarios, and compares them with runs."""
