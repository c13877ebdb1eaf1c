"""Patches: the changes that each journal record makes in the viewer's state, in a compact form for the browser.

The viewer has one row per journal record: a dict with the record's values and sentence (`record_rows.py`). Its patch has the
changes of the state that `journal.fold` and `picture_state.Seen` have listed. The browser applies the patches to its own copy of
the state, and derives nothing.

In a patch, `"$fields.subject"` stands for the value that the row has at that place. Values that the row does not have are added
to it: long texts in `texts`, with places such as `"$texts.0"`, and long lists and objects in `with`, with places such as
`"$with.0"`. A patch with such places is called a form. So similar records have equal forms, and a run has few forms: the first
row with a form has the form in `patch`, later rows have in `patch` the number of the form, counted from 0. A long text in `texts`
is replaced by its number too, from its second row on.

The browser keeps only the parts of the state that a panel draws (`is_shown`).
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from kcontrol.journal.state_changes import Change

UNSEEN_PARTS = frozenset({"acknowledged", "consumers", "offsets_logs"})
SEEN_OF_NODE: dict[str, frozenset[str]] = {
    "controller": frozenset({"controller_epoch", "active_controller_id", "partition_states", "replica_states"}),
    "broker": frozenset({"controller_id", "controller_epoch"}),
    "group": frozenset(),
}
"""The fields of a broker's contexts that a panel draws; all other parts of a broker are drawn."""

SHORT = 16
"""The most characters of a text that is part of a form."""
MOST = 6
"""The most entries of a list or an object that is searched for values of the row; a longer one becomes a literal."""

LOOKED_AT = 16
"""The most entries of a list in the row that are noted one by one."""

Form = tuple[Any, ...]
Row = dict[str, Any]


def is_shown(path: Sequence[str]) -> bool:
    """Whether a panel of the viewer draws this part of the state."""
    if path[0] != "nodes" or len(path) < 4:
        return path[0] not in UNSEEN_PARTS
    return path[2] not in SEEN_OF_NODE or path[3] in SEEN_OF_NODE[path[2]]


class Patches:
    """Converts the changes of state by each journal record into a patch, which the browser applies to its copy of the state.

    A patch or a long text that was sent before is replaced by its number.
    """

    def __init__(self) -> None:
        self._forms: dict[Form, int] = {}
        self._texts: dict[str, int] = {}

    def of(self, row: Row, changes: Iterable[Change]) -> Row:
        """Return the patch of this row (one journal record), which the browser applies to its copy of the state.

        `changes` are the record's changes of the state; return {} if no panel draws them.
        """
        shown = [change for change in changes if is_shown(change[1])]
        if not shown:
            return {}
        maker = _FormMaker(row)
        form = tuple((op, maker.form(value), *map(maker.key, path)) for op, path, value in shown)
        found: Row = {"patch": self._forms.get(form)}
        if found["patch"] is None:
            found["patch"], self._forms[form] = _as_json(form), len(self._forms)
        if maker.texts:
            found["texts"] = [self._text(text) for text in maker.texts]
        return found | ({"with": maker.literals} if maker.literals else {})

    def _text(self, text: str) -> str | int:
        """Return the number of `text` if it was sent before, else return `text` and store it under the next number, from 0."""
        if (number := self._texts.get(text)) is not None:
            return number
        self._texts[text] = len(self._texts)
        return text


class _FormMaker:
    """Converts the changes of state by one journal record into a form, in which "$fields.subject" stands for a value of it.

    So similar records have equal forms. "$texts.0" or "$with.0" stands for a long value, stored in `texts` or `literals`.
    """

    def __init__(self, row: Row) -> None:
        node = row["id"][0]
        self.texts: list[str] = []
        self.literals: list[Any] = []
        self._scalars: dict[str | int, str] = {".".join(map(str, row["id"])): "$key", node: "$id.0"}
        self._numbers = {str(node): "$id.0"}  # as keys
        self._things = {id(row["fields"]): "$fields"}  # by identity: the fold notes parts of the row
        for name, value in row["fields"].items():
            self._note(value, f"$fields.{name}", 2)

    def _note(self, value: Any, place: str, deep: int) -> None:
        kind = type(value)
        if kind is str:
            self._scalars.setdefault(value, place)
        elif kind is int:
            self._scalars.setdefault(value, place)
            self._numbers.setdefault(str(value), place)
        elif kind is list or kind is dict:
            self._things[id(value)] = place
            if kind is list and deep and len(value) <= LOOKED_AT:
                for number, item in enumerate(value):
                    self._note(item, f"{place}.{number}", deep - 1)

    def key(self, part: str) -> Any:
        """A number that stands in the journal record is named by its place there, such as "$id.0"."""
        return self._numbers.get(part) or self.form(part)

    def form(self, part: Any) -> Any:
        """Return the path of a changed value in the journal record, such as "$fields.subject", to stand for the value.

        A short value that is not in the record stays; a long value is added to `texts` or `literals`: return its path there, such
        as "$texts.0".
        """
        kind = type(part)
        # A form has no numbers, because 1 and True are equal in Python.
        if part is None or kind is bool:
            return part
        place = self._scalars.get(part) if kind is str or kind is int else self._things.get(id(part))
        if place is not None:
            return place
        if kind is str:
            return part if len(part) <= SHORT and not part.startswith("$") else self._text(part)
        if kind is list and len(part) <= MOST:
            # A short list or object becomes a tuple that begins with its kind.
            return ("list", *map(self.form, part))
        if kind is dict and len(part) <= MOST:
            return ("object", *((key, self.form(value)) for key, value in part.items()))
        self.literals.append(deepcopy(part))  # the fold changes the original later
        return f"$with.{len(self.literals) - 1}"

    def _text(self, text: str) -> str:
        if text not in self.texts:
            self.texts.append(text)
        return f"$texts.{self.texts.index(text)}"


def _as_json(form: Any) -> Any:
    """`("list", 1, 2)` becomes `[1, 2]`, and `("object", ("a", 1))` becomes `{"a": 1}`."""
    if not isinstance(form, tuple):
        return form
    kind, *parts = form
    if kind == "object":
        return {key: _as_json(value) for key, value in parts}
    return [_as_json(part) for part in (parts if kind == "list" else form)]
