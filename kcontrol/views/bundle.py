"""The viewer's JavaScript modules as one module, without a build chain: what anywidget and a page without a kernel load."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from kcontrol.views.meanings import MEANINGS, STATIC

# Each module comes after those that it imports.
MODULES = (
    "dom",
    "fold",
    "timeline",
    "brokers",
    "partitions",
    "znodes",
    "spacetime",
    "machine",
    "journal",
    "beside",
    "replicas",
    "controls",
)

_IMPORT = re.compile(r'^import \{ (?P<names>[^}]+) \} from "\./(?P<module>\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|class|function) (?P<name>\w+))", re.MULTILINE)


def _imports(source: str) -> str:
    return _IMPORT.sub(r"const { \g<names> } = \g<module>_js;", source)


def _enclosed(name: str, source: str) -> str:
    """A module as a function that is called at once, so that no two modules share a name by accident."""
    exported = ", ".join(match["name"] for match in _EXPORT.finditer(source))
    return f"const {name}_js = (() => {{\n{_EXPORT.sub('', _imports(source))}\nreturn {{ {exported} }};\n}})();\n"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def script() -> str:
    """The viewer as one ES module, whose default export has `initialize` and `render` as anywidget wants them."""
    meanings = f"const meanings_js = {{ MEANINGS: {json.dumps(MEANINGS, separators=(',', ':'))} }};\n"
    enclosed = [_enclosed(name, _read(STATIC / f"{name}.js")) for name in MODULES]
    return "".join([meanings, *enclosed, _imports(_read(STATIC / "viewer.js"))])


@cache
def style() -> str:
    """The viewer's style sheet."""
    return _read(STATIC / "viewer.css")
