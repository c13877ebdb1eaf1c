"""An exercise for the tests."""

acts = []
