"""A run as one HTML file, which steps through the run without a kernel and without a network."""

import html
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kcontrol.core.errors import UserError
from kcontrol.journal.journal import Record
from kcontrol.views import bundle, compared_run
from kcontrol.views.compared_run import ComparedRun
from kcontrol.views.moving_strip import strips_of
from kcontrol.views.record_rows import about_run, rows

# The page contains everything, so this policy forbids the browser to load anything.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"

START = """
const held = DATA;
const model = {
  get: (name) => held[name],
  set: (name, value) => { held[name] = value; },
  save_changes() {}, send() {}, on() {}, off() {},
};
const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => document.body.classList.toggle("kc-dark", held.theme ? held.theme === "dark" : dark.matches);
dark.addEventListener("change", paint);
paint();
render({ model, el: document.getElementById("viewer") });
"""


EXPORTS = re.compile(r"^export (?:(?:default )?\{.*\};$)?", re.MULTILINE)


def _script_safe(value: Any) -> str:
    """Return JSON for a script element: it has no `<`, `>` and `&`, so it cannot close the element."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def html_page(records: Iterable[Record], title: str, *, at: int = -1, theme: str = "", beside: ComparedRun | None = None) -> str:
    """Return the HTML page of a run as text; `at` is the index of the journal record shown first (-1: the last).

    `theme` is "light", "dark" or "", the browser's theme; `beside` is a second run to show.
    """
    records = list(records)
    found = rows(records)
    position = at + len(found) if at < 0 else at
    data = {"records": found, "count": len(found), "at": max(0, min(position, len(found) - 1)), "title": title, "theme": theme}
    data |= about_run(found) | {"asked": [], "details": False, "actions": [], "live": False}
    data |= {"branches": [], "branch": title, "strips": strips_of(records)} | compared_run.traits(beside)
    code = EXPORTS.sub("", bundle.script())
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{bundle.style()}</style></head>\n"
        '<body class="kc-page"><main id="viewer"></main><noscript>This page needs JavaScript.</noscript>\n'
        f'<script type="module">{code}{START.replace("DATA", _script_safe(data), 1)}</script></body></html>\n'
    )


def write_html(records: Iterable[Record], path: str | Path, title: str, **options: Any) -> None:
    """Write the page, with the options of `html_page`, to a file. Raises UserError if the file cannot be written."""
    try:
        Path(path).write_text(html_page(records, title, **options), encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"The page cannot be written to {path}: {error.strerror}; choose another file or free disk space."
        ) from None
