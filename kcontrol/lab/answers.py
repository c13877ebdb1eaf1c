"""Answers as text: what a stub, a solution or a learner's file defines, and a listed wrong answer in the stub's place."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

from kcontrol.errors import UserError


class Slot(NamedTuple):
    """The one public name that a stub defines: a function, by its heading, or a value where `heading` is None."""

    name: str
    heading: str | None


def slot(text: str) -> Slot:
    """The last public name that a file defines. Raises UserError where it defines none, or is no Python."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError) as error:
        raise UserError(f"This is no Python: {_about(error)}.") from None
    for node in reversed(body):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            return Slot(node.name, f"def {node.name}({ast.unparse(node.args)}):")
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and not target.id.startswith("_"):
                return Slot(target.id, None)
    raise UserError("There is no answer in it: it should define the function, or the value, that the stub defines.")


def _about(error: SyntaxError | ValueError) -> str:
    return f"{error.msg}, in line {error.lineno}" if isinstance(error, SyntaxError) else str(error)


def answer_in(text: str, place: str, name: str) -> Any:
    """What a file defines under this name; its text is run, so for a learner's own file only in a process of its own.

    Raises UserError where it does not define that, and whatever the text raises.
    """
    slot(text)
    scope: dict[str, Any] = {"__name__": "answer", "__file__": place}
    exec(compile(text, place, "exec"), scope)  # noqa: S102 - ours, or the learner's in a process of its own
    if name not in scope:
        raise UserError(f"It does not define {name}, which the stub does.")
    return scope[name]


def shipped(entry: dict[str, Any], which: str) -> Any:
    """The answer that the `stub` or the `solution` of an exercise defines; both come with the package."""
    return answer_in(_text(entry, which), entry[which], stub_slot(entry).name)


def stub_slot(entry: dict[str, Any]) -> Slot:
    """What an exercise asks to fill."""
    return slot(_text(entry, "stub"))


def _text(entry: dict[str, Any], which: str) -> str:
    return Path(entry["folder"], entry[which]).read_text(encoding="utf-8")


def wrong(entry: dict[str, Any], listed: dict[str, Any]) -> Any:
    """A listed wrong answer: its `code` is the function's body, or the value's expression, in the stub's place."""
    name, heading = stub_slot(entry)
    code = listed["code"]
    filled = f"{heading}\n{textwrap.indent(code, '    ')}\n" if heading else f"{name} = {code}\n"
    return answer_in(f"{_text(entry, 'stub')}\n\n{filled}", f"<{entry['id']}: {listed['misconception']}>", name)
