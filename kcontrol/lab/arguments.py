"""Checks of what a person passes to a method: each raises UserError in one printable sentence that says what is legal."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kcontrol.errors import UserError
from kcontrol.views import text


def shown(value: object) -> str:
    """Return a value as a message may show it: printable, and not too long."""
    return text.clean(ascii(value), 100)


def words(value: object, what: str, example: str) -> str:
    """Return text that can be stored as UTF-8."""
    if not isinstance(value, str):
        raise UserError(f"{what} is text, such as {example!r}, not {shown(value)}.")
    storable(value)
    return value


def storable(value: object) -> None:
    """Raise UserError for text, in whatever it is nested, that has half of a surrogate pair: UTF-8 has no bytes for it."""
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise UserError(f"{shown(value)} has half of a surrogate pair in it, which cannot be stored: leave it out.")
    if isinstance(value, Mapping):
        storable([*value, *value.values()])
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for element in value:
            storable(element)


def mapping(value: Any, what: str, example: str) -> Mapping[Any, Any]:
    """Return a mapping; None stands for an empty one."""
    if value is not None and not isinstance(value, Mapping):
        raise UserError(f"{what} are a dict, as in {example}, not {shown(value)}.")
    return value or {}


def whole(value: Any, what: str) -> int:
    """Return a whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise UserError(f"{what} is a whole number, such as 7, not {shown(value)}.")
    return value


def path(value: Any, example: str) -> Path:
    """Return the path of a file or folder."""
    if not isinstance(value, str | os.PathLike) or not str(value) or "\0" in str(value):
        raise UserError(f"A file is named by its path, such as {example!r}, not {shown(value)}.")
    storable(str(value))
    return Path(value)
