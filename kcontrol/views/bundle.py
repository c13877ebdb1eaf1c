"""The viewer's JavaScript modules joined into one module, which the widget and the HTML page load; there is no build step."""

import json
import re
from functools import cache
from importlib.resources.abc import Traversable

from kcontrol.views.explanations import MEANINGS, STATIC
from kcontrol.views.state_diff import FIELDS, TIMESTAMP

# Each module comes after those that it imports.
MODULES = (
    "dom",
    "patches",
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
    "groups",
)

_IMPORT = re.compile(r'^import \{ (?P<names>[^}]+) \} from "\./(?P<module>\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|class|function) (?P<name>\w+))", re.MULTILINE)


def _imports(source: str) -> str:
    return _IMPORT.sub(r"const { \g<names> } = \g<module>_js;", source)


def _enclosed(name: str, source: str) -> str:
    """A module as one constant of JavaScript, so that names that it does not export stay local."""
    exported = ", ".join(match["name"] for match in _EXPORT.finditer(source))
    return f"const {name}_js = (() => {{\n{_EXPORT.sub('', _imports(source))}\nreturn {{ {exported} }};\n}})();\n"


def _read(path: Traversable) -> str:
    return path.read_text(encoding="utf-8")


@cache
def script() -> str:
    """Return the viewer as one ES module, whose default export has the functions `initialize` and `render` for anywidget."""
    # The module tables.js has no file: its tables are those of Python.
    found = {"MACHINES": MEANINGS["machines"], "FIELDS": FIELDS, "TIMESTAMP": TIMESTAMP.pattern}
    tables = f"const tables_js = {json.dumps(found, separators=(',', ':'))};\n"
    enclosed = [_enclosed(name, _read(STATIC / f"{name}.js")) for name in MODULES]
    return "".join([tables, *enclosed, _imports(_read(STATIC / "viewer.js"))])


@cache
def style(name: str = "viewer") -> str:
    """Return the style sheet of the viewer, or of another picture."""
    return _read(STATIC / f"{name}.css")
