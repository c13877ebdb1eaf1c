"""Solution: both znodes have the data of this broker's transaction."""


def was_it_us(me, tried_epoch, named, stored_epoch):
    """Return whether the broker `me`, which tried to write `tried_epoch` as controller epoch, has won the election.

    /controller names broker `named`, -1 without a controller; /controller_epoch has `stored_epoch`.
    """
    return named == me and stored_epoch == tried_epoch
