"""An exercise for the tests."""

answer = ["/brokers/topics/t/partitions", "/brokers/topics/t/partitions/0", "/brokers/topics/t/partitions/0/state"]
