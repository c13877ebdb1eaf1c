"""Sweeps: many runs of one scenario for each combination of settings, and the probabilities that follow from them."""
