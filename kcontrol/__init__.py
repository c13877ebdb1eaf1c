"""Runs Kafka's control plane (its controller and its group coordinator); a run can be paused, rewound and branched."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kcontrol import exercises as exercises
    from kcontrol import journal as journal
    from kcontrol import rules as rules
    from kcontrol.lab.lab import Lab as Lab

__version__ = "0.1.0"
__all__ = ["Lab", "exercises", "journal", "rules"]


def __getattr__(name: str) -> Any:
    """Return the public object `name` (Lab, exercises, journal or rules), and import its module at this first use.

    Raises AttributeError for any other name.
    """
    # The import is late, so that the command line works without pandas.
    if name == "Lab":
        from kcontrol.lab.lab import Lab

        return Lab
    if name in __all__:
        return import_module(f"kcontrol.{name}")
    raise AttributeError(f"module 'kcontrol' has no attribute {name!r}")
