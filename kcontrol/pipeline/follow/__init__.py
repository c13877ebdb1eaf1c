"""Functions that keep the tables of broker logs up to date while the logs grow and are rotated.

Read `followed_files.py` first (which bytes were read), then `checkpoint.py` (what a killed process leaves), then `follow.py`.
"""
