"""Solution: an expiry time in the record decides alone; without it the retention counts from the end of the last member."""


def expired(offset, group, now):
    if offset["expire_timestamp"] >= 0:
        return offset["expire_timestamp"] < now
    if group["state"] != "Empty":
        return False
    return now - group["since"] >= group["retention"]
