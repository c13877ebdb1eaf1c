"""Runs case files of the format in FORMAT-controller.md against our controller: python -m tests.conformance FILE."""
