"""Finds the parts of a log line in which a message of Kafka has names of topics, groups or clients, by `log_lines.tsv`."""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from kcontrol.kafka_logs.log_lines import STATE
from kcontrol.pipeline.logs.patterns import FACT, NAME, TYPE, forms

KINDS = {
    "topic": "topic", "topics": "topic", "added_topics": "topic", "deleted_topics": "topic",
    "group": "client", "groups": "client", "instance": "client",
}  # fmt: skip
"""The facts of messages that are names, each with the kind of its names."""
PLACES = ("partitions", "assignment", "states")
"""The types of facts that are lists of partitions or replicas."""
TOKEN, TOPIC = re.compile(r"[A-Za-z0-9._-]+"), re.compile(r"([A-Za-z0-9._-]+?)(?:-|, ?)\d+(?![\w-])")
LOGGER = r"(?: \([\w.$-]+\))?\s*$"


class Place(NamedTuple):
    """A part of a log line in which a message of Kafka has names of topics or clients, such as "t-0, u-1"."""

    # "topic", or "client" for names of clients and groups.
    kind: str
    # How the part is written, a conversion of `templates.TYPES`: "names" is a list of names; "partitions", "assignment" and
    # "states" are lists with partitions such as "t-0"; any other type, such as "text", is one name.
    type: str
    # The part is line[start:end].
    start: int
    end: int

    def names(self, line: str) -> list[str]:
        """Return the names of topics, or of groups and clients, in one part of a log message, from left to right.

        The part is that of `line` from `self.start` to `self.end`.
        """
        return [line[start:end] for start, end in self.spans(line)]

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Return the start and the end in `line` of each name in this part; the word before a list, such as "Set", is no name."""
        if self.type in PLACES:
            return [found.span(1) for found in TOPIC.finditer(line, self.start, self.end)]
        if self.type == "names":
            inside = line.find("(", self.start, self.end) + 1 or self.start
            return [found.span() for found in TOKEN.finditer(line, inside, self.end)]
        text = line[self.start : self.end]
        start = self.end - len(text.removeprefix("Some("))
        return [(start, start + len(text.removeprefix("Some(").removesuffix(")")))]


def places(line: str) -> list[Place] | None:
    """Return where a log line has names of topics, clients or groups: a Place (start, end, kind) per part; [] without names.

    Return None if no row of `log_lines.tsv` (Kafka's messages) matches the line.
    """
    for words, pattern, groups in _rows():
        if words in line and (found := pattern.search(line)):
            return [Place(kind, type_, *found.span(n)) for n, (kind, type_) in groups.items() if found[n] is not None]
    return None


@cache
def _rows() -> tuple[tuple[str, re.Pattern[str], dict[int, tuple[str, str]]], ...]:
    """Return (text, regular expression, groups) for each row of `log_lines.tsv`, which is one wording of a log message.

    Such a message contains the text and matches the expression. `groups` maps the number of each capture group with names of
    topics or clients to (`Place.kind`, `Place.type`).
    """
    return tuple(
        (form.words, re.compile(form.pattern[1:-1] + LOGGER), dict(_groups(form.replacement)))
        for form in forms() if form.kind != STATE
    )  # fmt: skip


def _groups(replacement: str) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield (number, (kind, type)) for each capture group that matches names: `kind` and `type` are those of Place.

    The groups are those of a row of `log_lines.tsv`; `replacement` is the row's `Form.replacement`. An example is
    (2, ("topic", "partitions")).
    """
    for fact in replacement.split(FACT)[1:]:
        name, _, value = fact.partition(NAME)
        type_, _, numbers = value.partition(TYPE)
        kind = "topic" if type_ in PLACES else KINDS.get(name) if type_ not in ("int", "bool") else None
        if kind is not None:
            yield from ((int(number), (kind, type_)) for number in re.findall(r"\$(\d+)", numbers))
