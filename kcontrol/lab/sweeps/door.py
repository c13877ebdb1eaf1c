"""What `Lab` uses of the sweeps. Nothing else of this folder is imported by the reader's house (`lint-imports`)."""

from kcontrol.lab.sweeps.sweep import sweep

__all__ = ("sweep",)
