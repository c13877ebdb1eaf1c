"""Solution: the transition that is refused because a newer controller has written the state znode."""

record = "1.1.203"
