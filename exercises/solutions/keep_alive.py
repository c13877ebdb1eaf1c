"""Solution: a parked request keeps the member alive, else a later heartbeat; the comparison is strict."""


def keep_alive(latest, session, deadline, parked):
    return parked or latest + session > deadline
