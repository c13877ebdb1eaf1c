"""An exercise for the tests."""

answer = "2.1.100"
