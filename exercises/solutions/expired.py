"""Solution: before 2.1 the record decides alone, then the retention counts from the commit or the end of the last member."""


def expired(offset, group, now):
    begin = offset.commit_timestamp
    if group.expiry == "commit":
        return offset.expire_timestamp < now
    if group.protocol_type and group.state == "Empty":
        begin = group.state_timestamp
    elif group.protocol_type and offset.is_subscribed:
        return False
    return now - begin >= group.retention_ms
