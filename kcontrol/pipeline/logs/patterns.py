"""The patterns by which Spark finds the kind of a message in a broker's log and its facts: rows of `kafka_logs/log_lines.tsv`.

A fact is a value in a message, such as `leader_epoch`; a form is a row of the table. The first form that matches a message gives
its kind. The forms of the kind `state` match the text of the fact `state`, which has the leader and ISR of a partition: the facts
of the matching form replace the fact `state`.
"""

import re
from functools import cache
from typing import NamedTuple

from kcontrol.kafka_logs.log_lines import REASON, Row, rows
from kcontrol.kafka_logs.templates import facts_of, literals, pattern

FACT, NAME, TYPE = "\u0001", "\u0002", "\u0003"
"""The characters before a fact, and between its name, type and value, in the text that a replacement makes."""
GROUP = re.compile(r"\(\?P<(\w+)>")

OPENINGS = {
    "{CTRL}": ("Controller ", "[Controller id="), "{KC}": ("[Controller ",), "{BRK}": ("Broker ", "[Broker id="),
    "{GC}": ("[Group",), "{GMM}": ("[Group",),
}  # fmt: skip
"""The beginnings of the messages whose template starts with a part."""


class Form(NamedTuple):
    """A row of the table that is read, with a regular expression of Java."""

    kind: str
    # A text that each such message contains.
    words: str
    # The part with which the row's template starts, one of OPENINGS, else "".
    opening: str
    # The facts, values that the message states: name to conversion, such as "leader" to "int".
    facts: dict[str, str]
    pattern: str
    # What replaces a matching message: its kind and facts as in `facts.encoded_facts`, with "$1", "$2" ... for the groups.
    replacement: str


@cache
def forms() -> tuple[Form, ...]:
    return tuple(_form(row) for row in rows() if row.releases and row.kind != REASON)


def _form(row: Row) -> Form:
    whole = f"^(?s:{pattern(row.template)})$"
    places: dict[str, list[int]] = {}
    for group, place in re.compile(whole).groupindex.items():
        places.setdefault(group.rstrip("0123456789"), []).append(place)
    # A number has no type, because its text is JSON.
    values = [
        f"{name}{NAME}{'' if kind == 'int' else kind + TYPE}" + "".join(f"${place}" for place in places[name])
        for name, kind in facts_of(row.template).items()
    ]
    words = max(literals(row.template), key=len, default="")
    opening = row.opening if row.opening in OPENINGS else ""
    return Form(row.kind, words, opening, facts_of(row.template), GROUP.sub("(", whole), FACT.join([row.kind, *values]))
