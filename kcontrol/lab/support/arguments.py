"""Checks arguments that a learner passes, and raises UserError, with a legal value or the remedy, for a wrong value."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kcontrol.broker.broker_configs import LARGEST_INT
from kcontrol.core.errors import UserError
from kcontrol.views import text

LARGEST_SHORT = 32_767
DIGITS = 10  # of LARGEST_INT


def shown(value: object) -> str:
    """Return a value's `ascii()` for a message; if it is longer than 100 characters, its first 99 and "…"."""
    return text.clean(ascii(value), 100)


def one_of(value: Any, legal: Iterable[str], what: str) -> str:
    """Return the argument `value` if it is one of the names `legal` of a `what`, such as "exercise"; else raise UserError."""
    names = [*legal]
    if isinstance(value, str) and value in names:
        return value
    listed = text.listed(map(repr, names), len(names))
    raise UserError(f"There is no {what} {shown(value)}: {f'choose one of {listed}' if names else 'there is none yet'}.")


def _of_type(value: Any, kind: Any, what: str, wanted: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise UserError(f"{what} must be {wanted}, not {shown(value)}.")
    return value


def words(value: object, what: str, example: str) -> str:
    """Text that UTF-8 can encode; `what` is the argument in the sentence ("A partition")."""
    storable(found := str(_of_type(value, str, what, f"text, such as {example!r}")))
    return found


def string(value: object, what: str, example: str, longest: int = LARGEST_SHORT) -> str:
    """Text of at most `longest` bytes in UTF-8: Kafka's protocol has two bytes for the length of such a text."""
    found = words(value, what, example)
    if (size := len(found.encode())) > longest:
        raise UserError(f"{what} must have at most {longest:,} bytes of UTF-8, not {size:,}: choose a shorter text.")
    return found


def partition(value: object) -> str:
    """The name of a partition as Kafka writes it, such as "t-0", with a number that a partition can have."""
    name = string(value, "A partition", "t-0")
    if not (said := re.fullmatch(r".+-([0-9]+)", name, re.DOTALL)):
        raise UserError(f"{shown(value)} is no partition: name it as in 't-0'.")
    if len(said[1]) > 1 and said[1][0] == "0":
        raise UserError(f"{shown(value)} is no partition: write its number without leading zeros, as in 't-0'.")
    if len(said[1]) > DIGITS or int(said[1]) > LARGEST_INT:
        raise UserError(f"{shown(value)} is no partition: a partition has a number from 0 to {LARGEST_INT}.")
    return name


def storable(value: object) -> None:
    """No text with half of a surrogate pair, also inside lists and mappings: UTF-8 cannot encode it."""
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise UserError(f"{shown(value)} contains half of a surrogate pair, which cannot be stored: remove it.")
    if isinstance(value, Mapping):
        storable([*value, *value.values()])
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for element in value:
            storable(element)


def mapping(value: Any, what: str, example: str) -> Mapping[Any, Any]:
    """An empty one for None."""
    found: Mapping[Any, Any] = _of_type({} if value is None else value, Mapping, what, f"a dict, as in {example}")
    return found


def whole(value: Any, what: str) -> int:
    return int(_of_type(value, int, what, "a whole number, such as 7"))


def count(value: Any, what: str) -> int:
    if whole(value, what) < 1:
        raise UserError(f"{what} must be a whole number from 1 on, not {shown(value)}.")
    return int(value)


def flag(value: Any, name: str) -> bool:
    return bool(_of_type(value, bool, name, "True or False"))


def spark_session(value: Any) -> Any:
    """Return the argument `spark` if it is an open session of Spark; None for None and for a substitute of a missing Spark.

    Raises UserError for any other value.
    """
    if not value:
        return None
    context: Any = getattr(value, "sparkContext", None)
    if not hasattr(context, "_jsc"):
        raise UserError(f"spark must be a session of Spark, such as lab.spark(), not {shown(value)}.")
    if context._jsc is None:
        raise UserError("This session of Spark has ended: open another session, such as spark = lab.spark().")
    return value


def path(value: Any, example: str) -> Path:
    """Return `value` as the path of a file or folder, which need not exist.

    Raises UserError, whose text has the path `example`, for a number, "" and other values.
    """
    if not isinstance(value, str | os.PathLike) or not str(value) or "\0" in str(value):
        raise UserError(f"A file must be given by its path, such as {example!r}, not {shown(value)}.")
    storable(str(value))
    return Path(value)
