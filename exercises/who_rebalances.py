"""Exercise: which consumer causes rebalances? Fill in about 8 lines, then exercises.check("who-rebalances", who_rebalances)."""


def who_rebalances(run):
    """Return a list: the rebalances per hour, rounded, and the consumer that has caused most of them.

    A record r of run.records with r.kind "group" and r.fields["to"] "PreparingRebalance" begins a rebalance. r.cause is the id
    of another record, None for a first cause. The first cause of a rebalance is the act of a consumer, whose name is in
    r.fields["action"][1]. r.at_ms is a time in ms; the run begins at 0.
    """
    # FILL IN (about 8 lines)
