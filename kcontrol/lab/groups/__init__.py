"""Makes tables and pictures of consumer groups from the journal of a run: one module per subject."""
