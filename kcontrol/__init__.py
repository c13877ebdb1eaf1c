"""Kafka's control plane to open, pause, rewind, branch and break."""
