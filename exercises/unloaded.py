"""Exercise: which parked request gets which error? Fill in about 4 lines, then exercises.check("unloaded", unloaded)."""


def unloaded(state, parked):
    """Return the error of a parked request when its group is unloaded, None if it gets no response then.

    `state` is the state of the group, such as "PreparingRebalance"; `parked` is "JoinGroup" or "SyncGroup". The error is text,
    such as "UNKNOWN_MEMBER_ID".
    """
    # FILL IN (about 4 lines)
