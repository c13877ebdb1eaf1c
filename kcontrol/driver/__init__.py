"""Runs handlers: event queues, round trips to ZooKeeper, fenced writes, and the records of both."""
