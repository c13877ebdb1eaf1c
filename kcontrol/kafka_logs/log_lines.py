"""The table of Kafka's log lines, `log_lines.tsv`: a row per form of a line, from 0.8.0 to 4.0.

    kind       what the line says, such as partition_transition; several rows may have one kind. After a dot: the case, if the
               journal distinguishes more cases than the lines do (`member_joined.pending`).
    releases   the first and the last release with the line. Empty: the line is only written, and read as another kind.
    file       the log that has it, as config/log4j.properties sets the appenders
    level      by release; empty: no line. An empty column: the line is only read.
    logger     by release
    template   `templates.py` explains it. {CTRL} and other names in capitals are the parts in the first rows.

A message is of the kind of the first row that matches it. A line is written by the last row of its kind that the release prints
and whose facts are all known. The kinds `state` and `reason` are texts inside lines: the leader and ISR of a partition, and why a
group rebalances.

Source: the log statements of Kafka's classes at each release's tag.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from kcontrol.kafka_logs.templates import Template, filled, numbers, parsed, pattern

TABLE = files("kcontrol.kafka_logs") / "log_lines.tsv"
STATE, REASON = "state", "reason"
"""The kinds of texts inside lines."""


class Row(NamedTuple):
    """A row of the table; `case` is what stands after the dot of the kind, `opening` the part with which the template begins."""

    kind: str
    case: str
    releases: str
    file: Template
    level: Template
    logger: Template
    opening: str
    template: Template

    def prints(self, at: tuple[int, ...]) -> bool:
        first, _, last = self.releases.partition("-")
        until = numbers(last or first)
        return not first or (numbers(first)[: len(at)] <= at and at[: len(until)] <= until)


class Written(NamedTuple):
    """A line as a release writes it; `file` is the log that has it, such as "controller.log"."""

    file: str
    level: str
    logger: str
    message: str


@cache
def rows() -> tuple[Row, ...]:
    return tuple(_rows())


def _rows() -> Iterator[Row]:
    parts: dict[str, str] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]:
        name, releases, file, level, logger, text = line.split("\t")
        opening = next((part for part in parts if text.lstrip("«").startswith(part)), "")
        for part, template in parts.items():
            text = text.replace(part, template)
        if name.startswith("{"):
            parts[name] = text
            continue
        kind, _, case = name.partition(".")
        yield Row(kind, case, releases, parsed(file), parsed(f"«{level}»"), parsed(logger), opening, parsed(text))


@cache
def _of(name: str) -> tuple[Row, ...]:
    """Return the rows of a kind, or of a kind and case, such as "member_joined.pending", from the last to the first."""
    return tuple(row for row in reversed(rows()) if name in (row.kind, f"{row.kind}.{row.case}"))


def text(name: str, release: str, facts: Mapping[str, Any]) -> str | None:
    """Return the text of a kind in a release; None if no row has it, or a fact is missing."""
    at = numbers(release)
    texts = (filled(row.template, at, facts) for row in _of(name) if row.prints(at))
    return next((found for found in texts if found is not None), None)


def read(kind: str, words: str) -> tuple[str, dict[str, str]] | None:
    """Return the case and the facts of a `reason`; None for words that are in no row."""
    for case, compiled in _patterns(kind):
        if (found := compiled.fullmatch(words)) is not None:
            return case, {name.rstrip("0123456789"): value for name, value in found.groupdict().items() if value is not None}
    return None


@cache
def _patterns(kind: str) -> list[tuple[str, re.Pattern[str]]]:
    return [(row.case, re.compile(pattern(row.template), re.DOTALL)) for row in rows() if row.kind == kind]


def written(name: str, release: str, facts: Mapping[str, Any]) -> Written | None:
    """Return the line of a kind in a release; None if the release does not log it, or a fact is missing."""
    at = numbers(release)
    for row in _of(name):
        level = filled(row.level, at, {}) if row.prints(at) else None
        message = filled(row.template, at, facts) if level else None
        if level and message is not None:
            return Written(filled(row.file, at, {}) or "", level, filled(row.logger, at, {}) or "", message)
    return None
