"""Solution: the read, metadata to the other brokers, metadata to broker 2, LeaderAndIsr to broker 2, then the election."""

order = ["E", "C", "B", "D", "A"]
