"""Tables of a run, as pandas frames: one module per subject."""
