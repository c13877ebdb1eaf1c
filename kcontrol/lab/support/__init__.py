"""Functions for the other modules of the lab: they check arguments, make settings, print output and raise errors."""
