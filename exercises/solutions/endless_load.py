"""Solution: broker 3 reads the log and does not finish; a JoinGroup gets COORDINATOR_LOAD_IN_PROGRESS."""

answer = [3, "PartitionElected", 14]
