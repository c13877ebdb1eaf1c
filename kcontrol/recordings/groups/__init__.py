"""Reads recordings of real group coordinators, converts them into journals, plays their requests, and compares them with runs."""
