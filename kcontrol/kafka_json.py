"""JSON as Kafka reads and writes it in znodes: what it takes for a number, what it overlooks, in which order it lists keys.

Source: kafka.utils.Json and kafka.utils.json.DecodeJson (2.8), over Jackson; scala.collection.mutable.HashMap (2.13).
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, NamedTuple

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
"""What Kafka's decoders take for a number: an integer of Java's size, and no string, fraction or truth value."""


class MalformedZnode(ValueError):
    """A znode holds text that its codec cannot read."""


class NotJson(MalformedZnode):
    """The text is no JSON at all, which some of Kafka's decoders take for nothing instead of failing."""


def encode(value: Any) -> bytes:
    """Compact JSON in the order of the keys, as Kafka writes it."""
    return msgspec.json.encode(value)


class Fields(NamedTuple):
    """Decoded JSON to read fields out of, with one error for all that can be wrong with them."""

    value: Any
    what: str

    def get(self, name: str, kind: Any, default: Any = ...) -> Any:
        """The field as `kind`, a type that msgspec can check. Raises MalformedZnode, also if it is missing without a default."""
        if not isinstance(self.value, dict):
            raise MalformedZnode(f"{self.what} is no JSON object")
        found = self.value.get(name, default)
        if found is ...:
            raise MalformedZnode(f"{self.what} has no {name!r}")
        return Fields(found, f"{name!r} in {self.what}").all(kind)

    def all(self, kind: Any) -> Any:
        """The whole value as `kind`. Raises MalformedZnode."""
        try:
            return msgspec.convert(self.value, kind)
        except msgspec.ValidationError as error:
            raise MalformedZnode(f"{self.what} cannot be read: {error}") from None


def decode(data: bytes, what: str) -> Fields:
    """The first JSON value in `data`; what follows it and a byte order mark are overlooked. `what` is for the error's text.

    Raises NotJson, or MalformedZnode where there is nothing at all.
    """
    try:
        return Fields(msgspec.json.decode(data), what)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        text = data.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n")
        if not text:
            raise MalformedZnode(f"{what} is empty") from None
        try:
            return Fields(_first_value(text), what)
        except ValueError:
            raise NotJson(f"{what} does not hold JSON: {error}") from None


def _first_value(text: bytes) -> Any:
    if text[:1] not in b'{["':
        raise ValueError("a number or a word with something behind it")
    return json.JSONDecoder(parse_constant=_refuse).raw_decode(text.decode())[0]


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def java_int(text: str) -> int:
    """What Java's Integer.parseInt reads: no blanks, no underscores, 32 bits. Raises ValueError for anything else."""
    if not re.fullmatch(r"[+-]?\d+", text) or not -(2**31) <= int(text) < 2**31:
        raise ValueError(f"{text!r} is no number")
    return int(text)


def in_hash_order(by_key: dict[str, Any]) -> dict[str, Any]:
    """The same map in the order in which Scala's mutable hash map lists these keys, which are of ASCII.

    The table has 16 places and doubles when three quarters full; a place's keys are sorted by hash.
    """
    size = 16
    while len(by_key) >= size * 3 // 4:
        size *= 2
    hashes = {key: _spread(key) for key in by_key}
    return {key: by_key[key] for key in sorted(by_key, key=lambda key: (hashes[key] & (size - 1), hashes[key]))}


def _spread(key: str) -> int:
    value = 0
    for character in key.encode("ascii"):
        value = (value * 31 + character) & 0xFFFFFFFF
    return value ^ (value >> 16)
