"""Encodes and decodes the JSON of znodes as Kafka does.

`encode` writes compact JSON. `decode` ignores bytes after the first value, and checks the types of
fields as Kafka's decoders do. `in_scala_hash_map_order` orders keys as Kafka writes them.

Source: kafka.utils.Json and kafka.utils.json.DecodeJson (2.8), over Jackson;
scala.collection.mutable.HashMap (2.13).
"""

import json
import re
from typing import Annotated, Any, NamedTuple

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
"""A number for Kafka's decoders: a 32-bit integer, and no string, fraction or boolean."""


class MalformedZnode(ValueError):
    """The error for a znode with data that its decoder cannot read."""


class NotJson(MalformedZnode):
    """The error for a znode whose data is not JSON.

    Some of Kafka's decoders read such data as empty.
    """


def encode(value: Any) -> bytes:
    """Return compact JSON; objects keep the order of their keys, as in Kafka."""
    return msgspec.json.encode(value)


class Fields(NamedTuple):
    """A decoded JSON value; `get` returns one field, and `all` the whole value, as a given type.

    Both raise MalformedZnode if the field or the value has another type; `description` names the
    znode in this error.
    """

    value: Any
    description: str

    def get(self, name: str, kind: Any, default: Any = ...) -> Any:
        """Return the field `name` as `kind`, a type that msgspec can check.

        Return `default` for a missing field. Raises MalformedZnode for a field of another type, or
        missing without `default`.
        """
        if not isinstance(self.value, dict):
            raise MalformedZnode(f"{self.description} is no JSON object")
        found = self.value.get(name, default)
        if found is ...:
            raise MalformedZnode(f"{self.description} has no {name!r}")
        return Fields(found, f"{name!r} in {self.description}").all(kind)

    def all(self, kind: Any) -> Any:
        """The whole value as `kind`. Raises MalformedZnode for a value of another type."""
        try:
            return msgspec.convert(self.value, kind)
        except msgspec.ValidationError as error:
            raise MalformedZnode(f"{self.description} cannot be read: {error}") from None


def decode(data: bytes, description: str) -> Fields:
    """Return the first JSON value in `data`; later bytes and a byte order mark are ignored.

    `description` names the znode in errors. Raises NotJson for text that is not JSON, and
    MalformedZnode for empty data.
    """
    try:
        return Fields(msgspec.json.decode(data), description)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        text = data.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n")
        if not text:
            raise MalformedZnode(f"{description} is empty") from None
        try:
            return Fields(_first_value(text), description)
        except ValueError:
            raise NotJson(f"{description} does not hold JSON: {error}") from None


def _first_value(text: bytes) -> Any:
    if text[:1] not in b'{["':
        raise ValueError("a number or a word with further text after it")
    return json.JSONDecoder(parse_constant=_refuse).raw_decode(text.decode())[0]


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def java_int(text: str) -> int:
    """As Java's Integer.parseInt: 32 bits, no blanks or underscores; else ValueError."""
    if not re.fullmatch(r"[+-]?\d+", text) or not -(2**31) <= int(text) < 2**31:
        raise ValueError(f"{text!r} is no number")
    return int(text)


def in_scala_hash_map_order(mapping: dict[str, Any]) -> dict[str, Any]:
    """Of Scala's mutable map. Raises UnicodeEncodeError for a key that is not ASCII."""
    # The table doubles at three quarters of its size; the keys of a bucket are sorted by hash.
    size = 16
    while len(mapping) >= size * 3 // 4:
        size *= 2
    hashes = {key: _spread(key) for key in mapping}
    in_order = sorted(mapping, key=lambda key: (hashes[key] & (size - 1), hashes[key]))
    return {key: mapping[key] for key in in_order}


def _spread(key: str) -> int:
    value = 0
    for character in key.encode("ascii"):
        value = (value * 31 + character) & 0xFFFFFFFF
    return value ^ (value >> 16)
