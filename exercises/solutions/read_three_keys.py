"""Solution: the version says the kind; each text has its length in front, so the dash belongs to the topic of C."""

# A: 0002 0007 62696c6c696e67
# B: 0001 0007 62696c6c696e67 0001 74 00000002
# C: 0001 0005 6175646974 0003 742d31 00000000
# A key is (kind, group, topic, partition), such as ("offset", "g", "t", 0) or ("group", "g", None, None).
keys = [("group", "billing", None, None), ("offset", "billing", "t", 2), ("offset", "audit", "t-1", 0)]
