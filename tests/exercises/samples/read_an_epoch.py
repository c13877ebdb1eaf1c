"""An exercise for the tests."""

answer = None
