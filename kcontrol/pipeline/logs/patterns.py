"""The table of messages in broker logs: `patterns.tsv` has one row per form of a message that has facts.

A fact is a value in a message, such as `leader_epoch`; a form is one wording of the message, which some releases of Kafka print.
Columns: the kind of the message, the releases that print the form, words that each such message has, its facts with their types,
and a regular expression for the whole message. The rows such as `{BRK}` at the top are parts of expressions: an expression has
the name `{BRK}` in place of the part. A group of an expression has the name of a fact; where a fact may stand at two places, the
groups are `broker` and `broker2`. The first row that matches a message gives its kind. The rows of the kind `(state)` match the
text of the fact `state`, which has the leader and ISR of a partition: the facts of the matching row replace the fact `state`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

STATE = "(state)"
FACT, NAME, TYPE = "\u0001", "\u0002", "\u0003"
"""The characters before a fact, and between its name, type and value, in the text that a replacement makes."""
LISTS = ("ints", "ids", "partitions", "names", "words", "assignment", "states", "epochs", "replicas")
POSSIBLY_EMPTY = re.compile(r"(\\.|[^()|?*+\]}{^$.\\])\(\?P<(\w+)>(\[\\d, ?\]\*|\[\\d,\]\*|\.\*\??)\)")
GROUP = re.compile(r"\(\?P<(\w+)>")
NUMBER = re.compile(r"\(\?P<\w+>(?:-\?)?\\d\+\)")
"""A group that takes a number only; a fact of such groups has no type in the replacement, as its text is JSON."""


OPENINGS = {
    "{CTRL}": ("Controller ", "[Controller id="),
    "{KC}": ("[Controller ",),
    "{BRK}": ("Broker ", "[Broker id="),
    "{GC}": ("[Group",),
}
"""The beginnings of the messages whose pattern starts with a part."""


class Form(NamedTuple):
    """A row of `patterns.tsv`: one wording of a kind of log message, as a regular expression of Java."""

    kind: str
    # The first and the last release that print the message.
    releases: str
    # A text that each such message contains, or "".
    words: str
    # The placeholder with which the row's pattern starts, one of "{CTRL}", "{KC}", "{BRK}" and "{GC}" (OPENINGS), else "".
    opening: str
    # The facts, values that the message states: name to type, such as "leader" to "int".
    facts: dict[str, str]
    pattern: str
    # What replaces a matching message: its kind and facts as in `facts.encoded_facts`, with "$1", "$2" ... for the groups.
    replacement: str


@cache
def forms() -> tuple[Form, ...]:
    """Return the rows of `patterns.tsv` in order, with placeholders such as `{BRK}` in the patterns filled in.

    The rows that define placeholders are left out.
    """
    parts: dict[str, str] = {}
    rows = []
    for line in (files("kcontrol.pipeline.logs") / "patterns.tsv").read_text().splitlines()[1:]:
        kind, releases, words, facts, pattern = line.split("\t")
        if kind.startswith("{"):
            parts[kind] = pattern
            continue
        opening = next((name for name in OPENINGS if pattern.startswith(name)), "")
        for name, part in parts.items():
            pattern = pattern.replace(name, part)
        types = dict(fact.split(":") for fact in facts.split())
        rows.append(_form((kind, releases, words, opening), types, pattern))
    return tuple(rows)


def _form(head: tuple[str, str, str, str], types: dict[str, str], pattern: str) -> Form:
    """Return a row of `patterns.tsv` as a Form: `head` has the Form's first four fields, `pattern` the regular expression.

    `types` maps a fact (value in a message) to its type, such as "leader" to "int".
    """
    # The group of a list also takes the character before the list, such as ":" in "ISR:". So an empty list has the
    # value ":", and only a list that the message lacks has the value "".
    marked = POSSIBLY_EMPTY.sub(lambda m: f"(?P<{m[2]}>{m[1]}{m[3]})" if types.get(_fact(m[2])) in LISTS else m[0], pattern)
    whole = f"^(?s:{marked})$"
    places: dict[str, list[int]] = {}
    for group, place in re.compile(whole).groupindex.items():
        places.setdefault(_fact(group), []).append(place)
    unlike = {_fact(group) for group in GROUP.findall(NUMBER.sub("", marked))}
    marks = {name: "" if type_ == "int" and name not in unlike else f"{type_}{TYPE}" for name, type_ in types.items()}
    values = [f"{name}{NAME}{mark}" + "".join(f"${n}" for n in places[name]) for name, mark in marks.items()]
    return Form(*head, types, GROUP.sub("(", whole), FACT.join([head[0], *values]))


def _fact(group: str) -> str:
    return group.rstrip("0123456789")
