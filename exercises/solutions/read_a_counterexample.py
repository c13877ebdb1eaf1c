"""Solution: after the deletion both brokers have a notification, and the handler of broker 1 can go on."""

answer = 8
