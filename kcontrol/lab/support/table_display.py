"""Classes of tables that a notebook shows in full width: no text is shortened, and a line may end inside a long name."""

from __future__ import annotations

import html as markup
import re
from collections.abc import Callable

import pandas as pd

# Places for a line break: after `_`, before `/`, in dotted names and JSON, and between the words of a name like BrokerChange.
_BREAK = re.compile(r"(?<=_)(?=\w)|(?<=[\w;])(?=/)|(?<=\.)(?=[A-Za-z])|(?<=[a-z])(?=[A-Z])|(?<=[,:{])(?=[\"\[{\w])")
_NUMBER = re.compile(r"(?<=\b\d{5})(?=\d{4,5}\b)")  # inside numbers of 9 or 10 digits
_HEX = re.compile(r"[0-9a-f]{36,}")  # 18 bytes or more, such as those of an assignment: they may break after every 8 bytes
_CELL = re.compile(r"(<t[hd][^>]*>)([^<]*)(?=</t[hd]>)")

MOST_WHOLE = 5  # columns with the index; in a table with more columns a long number may break
MOST_COLUMNS = 8  # with the index; a table with more columns gets less space around its texts and a smaller font
MARK = "\u25b6 "  # begins one cell of a Grid
_SMALLER = "<style>.dataframe.{} :is(td, th) {{ padding: 0.4em {}; font-size: {}; }}</style>\n"


def breakable(html: str, *, numbers: bool = False) -> str:
    """A table in HTML with `<wbr>`, a place for a line break, inside long names and, with `numbers`, after a fifth digit."""
    html = _CELL.sub(lambda c: c[1] + _HEX.sub(lambda b: re.sub(r"(.{16})\B", r"\1<wbr>", b[0]), _BREAK.sub("<wbr>", c[2])), html)
    return _CELL.sub(lambda cell: cell[1] + _NUMBER.sub("<wbr>", cell[2]), html) if numbers else html


class Frame(pd.DataFrame):
    """A DataFrame that a notebook shows with its long texts in full."""

    _smaller = "kc-compact", "0.25em", "85%"

    @property
    def _constructor(self) -> Callable[..., Frame]:
        return type(self)

    def _repr_html_(self) -> str:
        columns = len(self.columns) + self.index.nlevels
        with pd.option_context("display.max_colwidth", None):
            html = breakable(super()._repr_html_() or "", numbers=columns > MOST_WHOLE)  # type: ignore[misc]
        if columns <= MOST_COLUMNS:
            return html
        return _SMALLER.format(*self._smaller) + html.replace('class="dataframe"', f'class="dataframe {self._smaller[0]}"')


class WholeRun(Frame):
    """A table of a whole run. Columns with equal values in each row, such as `run`, stand in one line below a wide table."""

    _smaller = "kc-whole-run", "0.15em", "78%"

    def _repr_html_(self) -> str:
        texts = [{*column.map(str)} for _, column in self.items()]
        differs = [len(found) > 1 or len(self) < 2 or len(texts) <= MOST_COLUMNS for found in texts]
        line = ", ".join(f"{name} {of.pop()}" for name, of, shown in zip(self, texts, differs, strict=True) if not shown)
        return Frame._repr_html_(self.loc[:, differs]) + (f"<p>In each row: {markup.escape(line)}</p>" if line else "")


class Wide(Frame):
    """A DataFrame that a notebook shows with all rows, with long texts in full, and with texts aligned left."""

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_rows", None):
            html = super()._repr_html_()
        return re.sub("<(td|th)>", r'<\1 style="text-align: left">', html).replace('align: right;"', 'align: left"')

    def __repr__(self) -> str:
        return str(self.to_string())


class Grid(Wide):
    """A Wide table whose HTML highlights the cell that begins with MARK."""

    def _repr_html_(self) -> str:
        return re.sub(f"({MARK}.*?)(?=</td>)", r"<mark>\1</mark>", super()._repr_html_())
