"""Exercise: is a member alive? Fill in about 2 lines, then exercises.check("keep-alive", keep_alive)."""


def keep_alive(latest, session, deadline, parked):
    """Return whether an operation with this deadline finds its member alive.

    `latest` is the time of the member's latest heartbeat, `session` its session timeout, `deadline` the time at which the
    operation expires, all in ms; `parked` says whether a JoinGroup or SyncGroup of the member is parked.
    """
    # FILL IN (about 2 lines)
