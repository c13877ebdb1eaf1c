"""Kafka's control plane to open, pause, rewind, branch and break."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kcontrol.lab.lab import Lab as Lab
    from kcontrol.runtime import journal_file as journal

__all__ = ["Lab", "journal"]


def __getattr__(name: str) -> Any:
    """Imports the front door only when somebody knocks: the command line and the core do without pandas."""
    if name == "Lab":
        from kcontrol.lab.lab import Lab

        return Lab
    if name == "journal":
        from kcontrol.runtime import journal_file

        return journal_file
    raise AttributeError(f"module 'kcontrol' has no attribute {name!r}")
