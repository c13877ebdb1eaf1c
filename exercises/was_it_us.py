"""Exercise: the response is "exists". Fill in 1 line, then check it with exercises.check("was-it-us", was_it_us)."""


def was_it_us(me, tried_epoch, named, stored_epoch):
    """Return whether this broker has won the election; /controller names broker `named`, -1 without a controller."""
    # FILL IN (1 line)
