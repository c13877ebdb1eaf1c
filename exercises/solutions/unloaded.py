"""Solution: a JoinGroup in the join phase and a SyncGroup after it; the coordinator is elsewhere now."""


def unloaded(state, parked):
    expected = "JoinGroup" if state == "PreparingRebalance" else "SyncGroup"
    if parked == expected:
        return "NOT_COORDINATOR"
    return None
