"""The reference: c-0 is New and has a replica on broker 2; of the offline ones broker 2 is in the ISR of b-0."""

answer = ["b-0", "c-0"]
