"""A function that writes metrics in Prometheus's text format, version 0.0.4, and the values that describe a metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Sample(NamedTuple):
    """A sample, which is one line: the suffix of the family's name ("", "_sum" or "_count"), the labels, and the value."""

    suffix: str
    labels: Mapping[str, str]
    value: float


class Family(NamedTuple):
    """All samples of one metric, in Prometheus a metric family; `type` is "gauge", "counter" or "summary"."""

    name: str
    type: str
    help: str
    samples: list[Sample]


def text(families: Iterable[Family]) -> str:
    """Return metric families in the text format of Prometheus: help, type and samples, with escaped label values."""
    return "".join(f"{line}\n" for family in families for line in _lines(family))


def _lines(family: Family) -> list[str]:
    words = family.help.replace("\\", "\\\\").replace("\n", "\\n")
    head = [f"# HELP {family.name} {words}", f"# TYPE {family.name} {family.type}"]
    return head + [f"{family.name}{s.suffix}{_labels(s.labels)} {_number(s.value)}" for s in family.samples]


def _labels(labels: Mapping[str, str]) -> str:
    escaped = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{','.join(escaped)}}}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
