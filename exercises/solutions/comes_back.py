"""Solution: c-0 is New and has a replica on broker 2; of the Offline partitions, only b-0 has broker 2 in its ISR."""

answer = ["b-0", "c-0"]
