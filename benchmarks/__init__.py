"""What kcontrol costs, as ratios against a peer in the same run. Results with date and command: RESULTS.md."""
