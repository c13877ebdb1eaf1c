"""An exercise for the tests."""

answer = 2
