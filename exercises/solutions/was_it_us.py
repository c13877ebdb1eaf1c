"""The reference."""


def was_it_us(me, tried_epoch, named, stored_epoch):
    """Whether this broker has won; /controller names `named`, -1 for nobody."""
    return named == me and stored_epoch == tried_epoch
