"""Exercise: has an offset expired? Fill in about 7 lines, then exercises.check("expired", expired)."""


def expired(offset, group, now):
    """Return whether the coordinator deletes an offset at the time `now`; all times are in ms.

    offset.commit_timestamp and offset.expire_timestamp are the times in its record, the latter None if the record has none (since
    2.1), and offset.is_subscribed says whether members may subscribe to its topic. group.expiry is "commit" before 2.1 and
    "unsubscribed" in 2.8. group.state is the state, which the group entered at group.state_timestamp, and group.protocol_type is
    None if the group never had a member. group.retention_ms is the retention time.
    """
    # FILL IN (about 7 lines)
