"""Exercise: has an offset expired? Fill in about 5 lines, then exercises.check("expired", expired)."""


def expired(offset, group, now):
    """Return whether an offset has expired, under 0.9 and under 2.8; all times are in ms.

    `offset` has the fields commit_timestamp and expire_timestamp of its record, the latter -1 in a record of 2.8. `group` has its
    state, the time `since` which it is in this state, and the `retention` time.
    """
    # FILL IN (about 5 lines)
