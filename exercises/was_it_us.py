"""Exercise: the create was answered "exists". Fill in 1 line, then check it with lab.check("was-it-us", was_it_us)."""


def was_it_us(me, tried_epoch, named, stored_epoch):
    """Whether this broker has won; /controller names `named`, -1 for nobody."""
    # FILL IN (1 line)
