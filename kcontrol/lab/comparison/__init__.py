"""Compares two runs: their first decisions and journal records that differ, and their last states."""
