"""Solution: NOT_COORDINATOR for a JoinGroup that is parked in the join phase and for a SyncGroup that is parked after it."""


def unloaded(state, parked):
    expected = "JoinGroup" if state == "PreparingRebalance" else "SyncGroup"
    if parked == expected:
        return "NOT_COORDINATOR"
    return None
