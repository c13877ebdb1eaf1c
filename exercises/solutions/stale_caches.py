"""Solution: broker 2 is not frozen, and got no LeaderAndIsr either."""

stale = {"2 hosts": "not sent", "3 hosts": "not sent", "3 metadata": "waits", "4 metadata": "waits"}
