"""Questions about consumer groups, answered from the journal: one module per subject."""
