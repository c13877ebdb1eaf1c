"""How a table of a run is registered: once, by a line in a class, which is a section of `lab.tables`.

The line names a function of the run. The function's docstring is that of the table; its first line stands in the overview.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Concatenate, ParamSpec, TypeVar

from kcontrol.lab.run import Run
from kcontrol.lab.support.calls import Commands

Given = ParamSpec("Given")
Made = TypeVar("Made")


class Section(Commands, owner="lab.tables"):
    """A section of the tables of a run: its `repr` lists the tables of the class and of its bases, one line each."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __repr__(self) -> str:
        return "\n".join(_overview(type(self)))


def of_run(make: Callable[Concatenate[Any, Given], Made]) -> Callable[Concatenate[Any, Given], Made]:
    """Return the method of a section that calls `make` with the section's run, and with the arguments of the call."""

    @functools.wraps(make)
    def table(section: Any, /, *given: Given.args, **named: Given.kwargs) -> Made:
        return make(section._run, *given, **named)

    first, *others = inspect.signature(make).parameters.values()
    setattr(table, "__signature__", inspect.Signature([first.replace(name="self"), *others]))  # noqa: B010 - mypy knows no such attribute
    return table


def _overview(kind: type) -> Iterator[str]:
    yield _first_line(kind)
    for section in kind.__mro__:
        tables = {name: table for name, table in vars(section).items() if not name.startswith("_")}
        if issubclass(section, Section) and tables:
            yield f"\n  {_first_line(section)}"
            for name, table in tables.items():
                called = f"{name}({', '.join([*inspect.signature(table).parameters][1:])})"
                yield f"    {called:<36} {_first_line(table)}"


def _first_line(documented: object) -> str:
    return (inspect.getdoc(documented) or "").partition("\n")[0]
