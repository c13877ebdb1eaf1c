"""The project stays small and speaks of no machine."""

import ast
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts import ROOT

PACKAGE = ROOT / "kcontrol"
# Aims from docs/architecture.md; a test fails above one and a half times.
FUNCTION_LINES, MODULE_LINES, DECIDING_LINES, PACKAGE_LINES = 40, 350, 2_800, 5_500
SLACK = 1.5
DECIDING = ("controller", "replica")
# The group coordinator knows nothing of the controller and is read on a weekend of its own, so it has an aim of its own. Kafka's
# has 4,117 lines at 2.8, without the assignors, which are the consumers'.
GROUP, GROUP_LINES = ("group", "runtime/purgatory.py", "runtime/timing_wheel.py", "sim/groups.py"), 1_500
# What only earlier releases did is read beside 2.8, a story at a time, and bears the release up to which it held in its name.
EARLIER, EARLIER_LINES = re.compile(r"_\d+_\d+\.py$"), 700
CLIENTS = ("runtime/zk_kazoo/hands.py", "runtime/zk_kazoo/relay.py", "runtime/zk_kazoo/twin.py")  # of notebooks, not of brokers
AROUND = ("lab", "views", "cli.py", *CLIENTS)
AROUND_LINES = 5_200
SEARCH = (
    "sim/search.py",
    "sim/quick.py",
    "sim/recall.py",
    "sim/fingerprint.py",
)  # makes searches quick
PROCESSES = ("runtime/embedded.py", "runtime/java.py", "runtime/watcher.py", "bootstrap.py")
# Behind a port that the learner reads: what makes real servers answer as the one in memory does, and looks at other people's.
REAL = ("runtime/zk_kazoo", "runtime/zk_observe.py", "runtime/zk_safety.py")
RECORDINGS = ("sim/recorded_step.py", "sim/recorded_choices.py")  # read recordings, as the pipeline does
NOT_THE_LEARNERS = ("pipeline", *RECORDINGS, "live", *PROCESSES, *REAL, *SEARCH, *AROUND, *GROUP)
# Written in two halves, so that this file does not trip over itself.
FORBIDDEN = {
    "a path of somebody's machine": r"(?<![\w.$}/])/(?:work|root|home|Users|mnt)/(?!\.\.\.)\w",
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


def code_lines(path: Path) -> int:
    """Counts the lines of a module that hold code: no blank ones, no comments, no docstrings."""
    prose: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node) is not None:
            prose |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    with path.open("rb") as file:
        code = {
            line
            for token in tokenize.tokenize(file.readline)
            if token.type not in LAYOUT
            for line in range(token.start[0], token.end[0] + 1)
        }
    return len(code - prose)


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yields each function of a module with its lines, docstring left out."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            first = node.body[0]
            if ast.get_docstring(node) is not None:
                lines -= (first.end_lineno or first.lineno) - first.lineno + 1
            yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", lines


def is_learners(path: Path) -> bool:
    """Tells whether a module belongs to what a learner may want to read in a weekend."""
    return not (EARLIER.search(path.name) or any(path.is_relative_to(PACKAGE / name) for name in NOT_THE_LEARNERS))


def test_sizes() -> None:
    """No function, no module, not the deciding rooms, the model or what is around it is above one and a half times its aim."""
    modules = {path: code_lines(path) for path in sorted(PACKAGE.rglob("*.py"))}
    deciding = sum(lines for path, lines in modules.items() if path.relative_to(PACKAGE).parts[0] in DECIDING)
    learners = sum(lines for path, lines in modules.items() if is_learners(path))
    group = sum(lines for path, lines in modules.items() if any(path.is_relative_to(PACKAGE / name) for name in GROUP))
    earlier = sum(lines for path, lines in modules.items() if EARLIER.search(path.name))
    around = sum(lines for path, lines in modules.items() if any(path.is_relative_to(PACKAGE / name) for name in AROUND))
    by_size = sorted((item for path in modules for item in functions(path)), key=lambda item: -item[1])
    print(f"deciding rooms {deciding} (aim {DECIDING_LINES}), the model as a whole {learners} (aim {PACKAGE_LINES})")
    print(f"the group coordinator {group} (aim {GROUP_LINES}), earlier releases alone {earlier} (aim {EARLIER_LINES})")
    print(f"what is around it, {', '.join(AROUND)}: {around} (aim {AROUND_LINES})")
    print(*(f"{lines:5} {path.relative_to(ROOT)}" for path, lines in modules.items() if lines > MODULE_LINES * 0.8), sep="\n")
    print(*(f"{lines:5} {name}" for name, lines in by_size[:15]), sep="\n")
    assert [name for name, lines in by_size if lines > FUNCTION_LINES * SLACK] == []
    assert [str(path.relative_to(ROOT)) for path, lines in modules.items() if lines > MODULE_LINES * SLACK] == []
    assert deciding <= DECIDING_LINES * SLACK
    assert learners <= PACKAGE_LINES * SLACK
    assert group <= GROUP_LINES * SLACK
    assert earlier <= EARLIER_LINES * SLACK
    assert around <= AROUND_LINES * SLACK


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


class AtRunTime(ast.NodeTransformer):
    """A module without what only the type checker sees."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """Leaves out the body of `if TYPE_CHECKING`."""
        return node.orelse if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" else self.generic_visit(node)


def test_every_import_is_declared() -> None:
    """What the package imports from outside is a direct dependency of the core, or of the extra `spark` for the pipeline."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = {re.split(r"[<>=]", item)[0].replace("-", "_") for item in project["dependencies"]}
    spark = {re.split(r"[<>=]", item)[0].replace("-", "_") for item in project["optional-dependencies"]["spark"]} | {"py4j"}
    undeclared = []
    for path in PACKAGE.rglob("*.py"):
        allowed = core | {"kcontrol", *sys.stdlib_module_names} | (spark if path.is_relative_to(PACKAGE / "pipeline") else set())
        for node in ast.walk(AtRunTime().visit(ast.parse(path.read_text()))):
            names = [item.name for item in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            undeclared += [f"{path.relative_to(ROOT)}: {name}" for name in names if name.split(".")[0].lower() not in allowed]
    assert undeclared == []
