"""Solution: both znodes have the data of this broker's transaction."""


def was_it_us(me, tried_epoch, named, stored_epoch):
    """Return whether this broker has won the election; /controller names broker `named`, -1 without a controller."""
    return named == me and stored_epoch == tried_epoch
