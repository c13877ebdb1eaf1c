"""Exercise: the response is "exists". Fill in 1 line, then check it with exercises.check("was-it-us", was_it_us)."""


def was_it_us(me, tried_epoch, named, stored_epoch):
    """Return whether the broker `me`, which tried to write `tried_epoch` as controller epoch, has won the election.

    /controller names broker `named`, -1 without a controller; /controller_epoch has `stored_epoch`.
    """
    # FILL IN (1 line)
