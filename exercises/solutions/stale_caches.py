"""The reference: broker 2 is well, and was not told either."""

stale = {"2 hosts": "not told", "3 hosts": "not told", "3 metadata": "waits", "4 metadata": "waits"}
