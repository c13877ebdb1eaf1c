"""Pictures of a run, and of the controller's tables."""
