"""Measure kcontrol, as ratios to a peer in the same run. RESULTS.md has the results with date and command."""
