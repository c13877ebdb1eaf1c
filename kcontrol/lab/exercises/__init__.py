"""Exercises and predictions: checks, the sandbox of a learner's answer, and verdicts."""
