"""Solution: the last value of each key is equal in both logs, and a tombstone is equal to no record."""


def nothing_is_lost(log, compacted):
    def load(records):
        found = {key: value for offset, key, value in records}
        return {key: value for key, value in found.items() if value != "tombstone"}

    return load(compacted) == load(log)
