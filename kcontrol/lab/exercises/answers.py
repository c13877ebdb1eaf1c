"""Executes the text of exercise answers: stubs, solutions, learners' files, and stubs with a known wrong answer."""

import ast
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

from kcontrol.core.errors import UserError


class Slot(NamedTuple):
    """A function or value that the file of an answer defines.

    `heading` is the `def` line of a function, None for a value.
    """

    name: str
    heading: str | None


def slot(text: str) -> Slot:
    """Return the name, and for a function the `def` line, of the last public function or variable at the top level of `text`.

    Raises UserError if `text` defines no public name, or is not Python code.
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError) as error:
        raise UserError(f"This is not Python code: {_about(error)}.") from None
    for node in reversed(body):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            return Slot(node.name, f"def {node.name}({ast.unparse(node.args)}):")
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and not target.id.startswith("_"):
                return Slot(target.id, None)
    raise UserError("The file has no answer: define the function or the value that the stub defines.")


def _about(error: SyntaxError | ValueError) -> str:
    return f"{error.msg}, in line {error.lineno}" if isinstance(error, SyntaxError) else str(error)


def answer_in(text: str, place: str, name: str) -> Any:
    """Execute the code in `text`, and return its variable or function `name`; `place` is the file name in tracebacks.

    Raises UserError if the code does not define the name, and any error of the code.
    """
    slot(text)
    scope: dict[str, Any] = {"__name__": "answer", "__file__": place}
    exec(compile(text, place, "exec"), scope)  # noqa: S102 - ours, or the learner's in a process of its own
    if name not in scope:
        raise UserError(f"The file does not define {name}: copy this name from the stub.")
    return scope[name]


def shipped(entry: dict[str, Any], which: str) -> Any:
    """Return the function or value that a shipped file of an exercise defines; `which` is "stub" or "solution"."""
    return answer_in(_text(entry, which), entry[which], stub_slot(entry).name)


def stub_slot(entry: dict[str, Any]) -> Slot:
    """Return the name, and for a function the `def` line, that the stub of an exercise defines."""
    return slot(_text(entry, "stub"))


def _text(entry: dict[str, Any], which: str) -> str:
    return Path(entry["folder"], entry[which]).read_text(encoding="utf-8")


def wrong(entry: dict[str, Any], listed: dict[str, Any]) -> Any:
    """Return the function or value that a known wrong answer to an exercise defines."""
    name, heading = stub_slot(entry)
    # The code replaces the body of the stub's function, or the stub's value.
    code = listed["code"]
    filled = f"{heading}\n{textwrap.indent(code, '    ')}\n" if heading else f"{name} = {code}\n"
    return answer_in(f"{_text(entry, 'stub')}\n\n{filled}", f"<{entry['id']}: {listed['misconception']}>", name)
