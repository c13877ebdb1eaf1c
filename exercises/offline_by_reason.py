"""Exercise: how long was each partition offline, and why? Fill in about 7 lines, then check offline_by_reason in chapter 17."""


def offline_by_reason(run):
    """Return the sum of the lengths in ms of the offline windows by "partition reason", such as {"t-0 death": 25}.

    run.tables.offline_windows() has the columns partition, reason, begin_ms and end_ms. In a window that has not
    ended end_ms is missing: such a window lasts until run.records[-1].at_ms. pandas.isna(value) is True for a missing value.
    """
    # FILL IN (about 7 lines)
