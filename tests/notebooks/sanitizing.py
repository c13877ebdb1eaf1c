"""What of a notebook's outputs is compared: one written rule, `sanitize.cfg`, which nbval reads too."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbval.plugin import coalesce_streams

RULES = Path(__file__).parent / "sanitize.cfg"

# A view of a widget is nothing without its kernel, and nbval does not compare it either.
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


@cache
def rules() -> tuple[tuple[re.Pattern[str], str], ...]:
    """The pairs of `regex` and `replace` lines, in their order."""
    lines = [line.partition(": ")[::2] for line in RULES.read_text().splitlines() if line.startswith(("regex: ", "replace: "))]
    pairs = list(zip(lines[::2], lines[1::2], strict=True))
    assert all((first, second) == ("regex", "replace") for (first, _), (second, _) in pairs), "regex and replace take turns"
    return tuple((re.compile(pattern), word) for (_, pattern), (_, word) in pairs)


def sanitized(text: str) -> str:
    """The text with everything that differs from run to run replaced by a word."""
    for pattern, word in rules():
        text = pattern.sub(word, text)
    return text


def compared(outputs: list[Any]) -> list[Any]:
    """Outputs without widget views, numbers of execution and blanks in a row: the longest entry sets a text column's width."""
    return [_compared(output) for output in outputs]


def outputs(notebook: NotebookNode) -> dict[str, object]:
    """What each cell shows, as it is compared; pieces of one stream count as one."""
    return {cell.id: compared(coalesce_streams(cell.outputs)) for cell in notebook.cells if cell.cell_type == "code"}


def _compared(value: Any) -> Any:
    match value:
        case str():
            return re.sub(" +", " ", sanitized(value))
        case list():
            return (
                _compared("".join(value)) if all(isinstance(item, str) for item in value) else [_compared(item) for item in value]
            )
        case dict():
            return {key: _compared(item) for key, item in value.items() if key not in (WIDGET_VIEW, "execution_count")}
    return value
