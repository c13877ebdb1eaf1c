"""Exercise: how long was each pause of a group? Fill in about 8 lines, then exercises.check("pauses", pauses)."""


def pauses(run):
    """Return, by each generation in which the group became Stable, the ms from its first parked request to Stable, as a dict.

    A record r of run.records has r.kind, r.at_ms and r.fields. Kind "park" is a request that is parked. Kind "group" is a
    transition: fields["to"] is the new state, fields["group_metadata"].generation the generation.
    """
    # FILL IN (about 8 lines)
