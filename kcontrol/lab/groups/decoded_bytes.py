"""Bytes of the offsets topic and of the consumer protocol as a table: a row per field, with its bytes and its value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kcontrol.core.errors import UserError, listed
from kcontrol.group.offsets_topic_records import LAYOUTS, OPEN_ENDED, Layout, read
from kcontrol.lab.support import arguments
from kcontrol.lab.support.late import frames, pd


def decode(record: str, data: object) -> pd.DataFrame:
    """Return one row per field of `data`, bytes or hexadecimal text: the field's bytes in hexadecimal, and its value.

    `record` is the kind of the data, such as "subscription". Raises UserError for an unknown kind or wrong bytes.
    """
    arguments.one_of(record, LAYOUTS, "record")
    # A journal has bytes as hexadecimal text.
    raw = _bytes(data)
    if len(raw) < 2:
        raise UserError(f"{len(raw)} bytes are no {record}: each record begins with a version of two bytes.")
    version = int.from_bytes(raw[:2], "big", signed=True)
    known = min(version, max(LAYOUTS[record])) if record in OPEN_ENDED else version
    if known not in LAYOUTS[record]:
        raise UserError(f"There is no version {version} of {record}; the versions are {listed(LAYOUTS[record], 9)}.")
    rows = [("version", raw[:2].hex(), version)]
    try:
        for row in _walk(LAYOUTS[record][known], raw, 2):
            rows.append(row)
    except (ValueError, UnicodeDecodeError) as problem:
        after = rows[-1][0]
        raise UserError(f"These bytes are no {record} of version {version}: {problem} after the field {after}.") from None
    return frames.Frame(rows, columns=["field", "bytes", "value"]).set_index("field")


def _bytes(data: object) -> bytes:
    if isinstance(data, bytes | bytearray):
        return bytes(data)
    try:
        return bytes.fromhex(arguments.words(data, "The bytes of a record", "0001 00000000"))
    except ValueError:
        raise UserError(f"{arguments.shown(data)} is no hexadecimal text: give bytes, or text such as '0001 00000000'.") from None


def _walk(layout: Layout, raw: bytes, start: int) -> Iterator[tuple[str, str, Any]]:
    for name, kind in layout:
        rows, start = _field(name, kind, raw, start)
        yield from rows


def _field(name: str, kind: Any, raw: bytes, start: int) -> tuple[list[tuple[str, str, Any]], int]:
    """Return rows (name, hexadecimal bytes, value) for the field that begins at `start` in `raw`, and its end position."""
    if not isinstance(kind, list):
        fields, end = read(((name, kind),), raw, start)
        value = fields[name]
        return [(name, raw[start:end].hex(), value.hex() if isinstance(value, bytes) else value)], end
    # A list field has a row for its length and rows for each element.
    count, end = read((("count", "int32"),), raw, start)
    rows: list[tuple[str, str, Any]] = [(f"{name}: number", raw[start:end].hex(), count["count"])]
    (element,) = kind
    for place in range(count["count"]):
        for part, sort in element if isinstance(element, tuple) else (("", element),):
            more, end = _field(f"{name}[{place}]{'.' * bool(part)}{part}", sort, raw, end)
            rows += more
    return rows, end
