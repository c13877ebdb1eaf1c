"""The project stays small and speaks of no machine. Run as a program, lowers the numbers of WORDS to what is there."""

import ast
import json
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.parts import ROOT

PACKAGE = ROOT / "kcontrol"
# Code lines of a function and of a module, of the reader's house, of each annex and of the rooms that decide. A commit may lower
# a number. Raising one needs a sentence in docs/architecture.md.
FUNCTION_LINES, MODULE_LINES = 46, 338
DECIDING = {"broker": 1_299, "controller": 2_428, "controller/earlier": 1_536, "core": 993, "group": 2_410}
ANNEXES = {"pipeline": 4_823, "lab/sweeps": 579, "recordings": 2_655}
HOUSE_LINES = 27_914
DOCSTRING_LINES = 11_418
LAB_FILES = 20  # a folder of the lab
# What a learner reads of 2.8 in a weekend: the values of every room, the controller without `earlier/`, and the driver.
WEEKEND, WEEKEND_LINES, CONTROLLER_FILES = ("core", "controller", "driver"), 4_200, 24
JAVASCRIPT_LINES = 1_842
# The ratchet of the language: how often the texts of LANGUAGE use a word that describes a process as a person. A commit may
# lower a number (`./run python -m tests.test_tidy`). "By hand" is not counted.
WORDS = {
    "told": 4,
    "tell": 1,
    "tells": 2,
    "nobody": 5,
    "somebody": 0,
    "anybody": 0,
    "everybody": 0,
    "whoever": 0,
    "whom": 0,
    "hear": 1,
    "hears": 1,
    "heard": 5,
    "news": 4,
    "goodbye": 0,
    "doomed": 0,
    "stranger": 0,
    "strangers": 0,
    "newcomer": 10,
    "newcomers": 0,
    "him": 0,
    "his": 0,
    "hand": 0,
    "hands": 1,
    "handed": 0,
    "of old": 1,
    "as ever": 0,
}
# CONTRIBUTING.md and this file quote the words.
LANGUAGE = re.compile(r"(?:kcontrol|exercises|docs|notebooks)/|README\.md$|tests/(?!test_tidy\.py$).*\.py$")
NO_TEXT = re.compile(r"\.png$|^notebooks/recordings/.*\.json$")  # the titles of recordings are the recorder's
# Written in two halves, so that this file does not trip over itself.
FORBIDDEN = {
    "a path of somebody's machine": r"/(?<![\w.$}/]/)(?:work|root|home|Users|mnt)/(?!\.\.\.)\w",
    "an address of a package index": r"(?:py"
    r"pi\.org|pythonhosted\.org|registry\.npm"
    r"js|repo1?\.maven|maven\.org|deb\.debian|anaconda\.org)",
}
LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip
# The text of the licences is not ours, and the locks are read by tests/infra/test_locks.py.
NOT_OURS = {"LICENSE", "LICENSE-text"}


def committed() -> list[Path]:
    """Returns the files that are, or are about to be, in the repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("This is no git repository.")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


class AtRunTime(ast.NodeTransformer):
    """A module without what only the type checker sees."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """Leaves out the body of `if TYPE_CHECKING`."""
        return node.orelse if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" else self.generic_visit(node)


class Measured(NamedTuple):
    """What the tests count of a module; the package is parsed once for all of them.

    `code` are the lines that hold code: no blank ones, no comments, no docstrings, no sentences about a rule. `functions` are the
    lines of each function, its docstring left out. `imports` are the modules that it imports when it runs.
    """

    code: int
    docstrings: int
    functions: dict[str, int]
    imports: list[str]


def lines_of(node: Any) -> range:
    return range(node.lineno, node.end_lineno + 1)


@cache
def measured(path: Path) -> Measured:
    nodes = list(ast.walk(tree := ast.parse(path.read_text())))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = {
        node: lines_of(node.body[0])
        for node in nodes
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None
    }
    docs = [lines_of(node) for node in nodes if isinstance(node, ast.keyword) and node.arg == "doc"]
    with path.open("rb") as file:
        code = {
            line
            for token in tokenize.tokenize(file.readline)
            if token.type not in LAYOUT
            for line in range(token.start[0], token.end[0] + 1)
        }
    functions = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": len(lines_of(node)) - len(texts.get(node, ()))
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    imports = list[str]()
    for node in ast.walk(AtRunTime().visit(tree)):
        imports += [item.name for item in node.names] if isinstance(node, ast.Import) else []
        imports += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
    prose = set().union(*texts.values(), *docs)
    return Measured(len(code - prose), sum(map(len, texts.values())), functions, imports)


def rooms() -> dict[str, int]:
    """Return the code lines of each room: a folder without the folders in it. The modules beside the rooms are `kcontrol`."""
    lines: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        lines["/".join(path.relative_to(PACKAGE).parent.parts) or "kcontrol"] += measured(path).code
    return dict(lines)


def written(path: Path) -> str:
    """Return the text of a file, of a notebook the text cells alone, in small letters."""
    if path.suffix != ".ipynb":
        return path.read_text().lower()
    cells = json.loads(path.read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown").lower()


def words(names: Collection[str]) -> dict[str, int]:
    """Return how often each word stands in the texts of the project, also as a part of a name, as in `told_of`."""
    named = {path.relative_to(ROOT).as_posix(): path for path in committed()}
    read = [path for name, path in named.items() if LANGUAGE.match(name) and not NO_TEXT.search(name)]
    text = "\n".join(written(path) for path in read)
    found = Counter(re.findall(rf"(?<![a-z])(?<!by )(?:{'|'.join(names)})(?![a-z])", text))
    return {name: found[name] for name in names}


def test_functions_and_modules_stay_small() -> None:
    """No function and no module has more code lines than the longest had when the limit was set."""
    modules = {str(path.relative_to(PACKAGE)): measured(path).code for path in PACKAGE.rglob("*.py")}
    by_size = {name: lines for path in PACKAGE.rglob("*.py") for name, lines in measured(path).functions.items()}
    assert {name: lines for name, lines in by_size.items() if lines > FUNCTION_LINES} == {}
    assert {name: lines for name, lines in modules.items() if lines > MODULE_LINES} == {}


def test_house_and_annexes_keep_their_limits() -> None:
    """The reader's house, each annex and each deciding room have no more code lines than their limit."""
    lines = rooms()
    annexes = {name: sum(count for room, count in lines.items() if f"{room}/".startswith(f"{name}/")) for name in ANNEXES}
    house = sum(lines.values()) - sum(annexes.values())
    limits = ANNEXES | DECIDING | {"house": HOUSE_LINES}
    found = annexes | {room: lines[room] for room in DECIDING} | {"house": house}
    assert {name: count for name, count in found.items() if count > limits[name]} == {}


def test_docstrings_keep_their_limit() -> None:
    """All docstrings of the package together have at most DOCSTRING_LINES lines."""
    assert sum(measured(path).docstrings for path in PACKAGE.rglob("*.py")) <= DOCSTRING_LINES


def test_2_8s_controller_is_read_in_a_weekend() -> None:
    """The values of every room, the controller without `earlier/` and the driver together have at most 4,200 code lines."""
    lines = rooms()
    assert sum(lines[room] for room in WEEKEND) <= WEEKEND_LINES
    assert len(list((PACKAGE / "controller").glob("*.py"))) <= CONTROLLER_FILES


def test_the_viewer_stays_small() -> None:
    """The scripts of the viewer have at most 1,842 lines together, comments and blank lines included."""
    scripts = (PACKAGE / "views" / "static").glob("*.js")
    assert sum(len(path.read_text().splitlines()) for path in scripts) <= JAVASCRIPT_LINES


def test_a_folder_of_the_lab_is_no_drawer() -> None:
    """Neither `lab/` nor a folder in it has more than twenty modules."""
    folders = [PACKAGE / "lab", *(folder for folder in (PACKAGE / "lab").rglob("*") if folder.is_dir())]
    assert {folder.name: len(list(folder.glob("*.py"))) for folder in folders if len(list(folder.glob("*.py"))) > LAB_FILES} == {}


def test_words_keep_their_numbers() -> None:
    """No word of the list stands more often in the texts than its number says; CONTRIBUTING.md says what to write instead."""
    assert {name: (count, WORDS[name]) for name, count in words(WORDS).items() if count > WORDS[name]} == {}


def test_no_file_speaks_of_a_machine() -> None:
    """No committed text holds a path of somebody's machine or the address of a package index."""
    found = []
    for path in committed():
        try:
            text = path.read_text() if path.name not in NOT_OURS else ""
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}: {what}: {match[0]}"
            for what, regex in FORBIDDEN.items()
            for match in re.finditer(regex, text)
        ]
    assert found == []


def test_no_lock_with_addresses_is_committed() -> None:
    """Files that are known to hold addresses of package indexes stay out."""
    assert [
        path.name for path in committed() if path.name in {"uv.lock", "poetry.lock", "package-lock.json", "Pipfile.lock"}
    ] == []


def test_every_import_is_declared() -> None:
    """What the package imports from outside is a direct dependency of the core, or of the extra `spark` for the pipeline."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = {re.split(r"[<>=]", item)[0].replace("-", "_") for item in project["dependencies"]}
    spark = {re.split(r"[<>=]", item)[0].replace("-", "_") for item in project["optional-dependencies"]["spark"]}
    spark |= {"py4j", "kafka", "snappy"}  # PySpark's own dependency, and the packages of kafka-python and python-snappy
    undeclared = []
    for path in PACKAGE.rglob("*.py"):
        allowed = core | {"kcontrol", *sys.stdlib_module_names} | (spark if path.is_relative_to(PACKAGE / "pipeline") else set())
        undeclared += [
            f"{path.relative_to(ROOT)}: {name}" for name in measured(path).imports if name.split(".")[0].lower() not in allowed
        ]
    assert undeclared == []


def main() -> None:
    """Lower the number of each word of WORDS to its count in the texts; numbers below their count stay."""
    text = Path(__file__).read_text()
    for name, count in words(WORDS).items():
        text = text.replace(f'    "{name}": {WORDS[name]},\n', f'    "{name}": {min(count, WORDS[name])},\n')
    Path(__file__).write_text(text)


if __name__ == "__main__":
    main()
