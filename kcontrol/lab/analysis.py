"""Finds the steps of a handler in a journal, and the source code of the controller's and the group coordinator's functions."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kcontrol.core.errors import UserError
from kcontrol.group.group_strategies import GROUP_STRATEGIES
from kcontrol.journal.journal import Record
from kcontrol.lab.run import Run
from kcontrol.lab.support.late import frames, pd
from kcontrol.lab.support.output import Shown
from kcontrol.lab.tables import journal_tables
from kcontrol.views import text

if TYPE_CHECKING:
    from types import ModuleType


HANDLED = {"at": journal_tables.TIME, "kind": "string", "what": "string"}


def handler_steps(run: Run, event: str, broker: int | None = None, *, memory: bool = False) -> pd.DataFrame:
    """Each read, write, transition and request of the last handler of an event that did more than read.

    `event` is its name, such as "BrokerChange"; `broker` limits the handlers to one broker; `memory` adds changes of the
    controller's memory. Raises UserError if no broker handled `event`.
    """
    records = run.records
    begins = [r for r in records if r.kind == "begin" and broker in (None, r.id.node)]
    handlers = [_steps(records, begin) for begin in begins if _event(begin) == event]
    if not handlers:
        names = ", ".join(sorted({_event(r) for r in begins})) or "none yet"
        raise UserError(f"No broker has handled {event!r} in this run; the handled events are: {names}.")
    # If all handlers only read or changed memory, the last one is chosen.
    chosen = next((steps for steps in reversed(handlers) if any(r.kind not in ("read", "update") for r in steps)), handlers[-1])
    rows = (
        {"id": str(r.id), "at_ms": r.at_ms, "kind": r.kind, "what": text.sentence(r)}
        for r in chosen
        # Records of kind `update` are the changes of the controller's memory.
        if memory or r.kind != "update"
    )
    return frames.Wide(journal_tables.table(rows, journal_tables.timed(HANDLED, records), "id"))


def source(name: str) -> Shown:
    """Return the source code, as a text for a notebook, of a function such as "leader_election.offline".

    Raises UserError, which lists the modules or the functions, for an unknown name.
    """
    # Names with the prefix "group.", such as "group.rebalance.on_complete_join", are functions of the group coordinator, other
    # names those of the controller. A function may be private. A rule that a learner can replace needs no module.
    if name in GROUP_STRATEGIES:
        return Shown(inspect.getsource(GROUP_STRATEGIES[name]).rstrip())
    of_group = f"{name}.".startswith("group.")
    rooms, owner = (("group",), "group coordinator") if of_group else (("controller", "controller.earlier"), "controller")
    modules = _modules(rooms)
    module, _, function = name.removeprefix("group.").partition(".")
    if module not in modules:
        form = f"name a function as {'group.' * of_group}<module>.<function>"
        raise UserError(f"The {owner} has no module {module!r}; its modules are {', '.join(modules)}: {form}.")
    found = dict(_functions(importlib.import_module(modules[module])))
    public = [name for name in found if not name.startswith("_")]
    if function not in found:
        unknown = f"There is no function {function!r} in {module}"
        problem = unknown if function else f"{name!r} is a module: add the name of a function"
        raise UserError(f"{problem}; its functions are {', '.join(public)}.")
    return Shown(inspect.getsource(found[function]).rstrip())


def _event(begin: Record) -> str:
    return str(begin.to_json().fields["event"])


def _steps(records: Sequence[Record], begin: Record) -> list[Record]:
    """Return the journal records that a handler has made after its `begin` record and before its `end` record.

    The `enqueue` records, about events that the handler has put into the queue of a broker, are left out.
    """
    members, found = {begin.id}, list[Record]()
    for record in records[records.index(begin) + 1 :]:
        if record.cause not in members or record.id[:2] != begin.id[:2] or record.kind == "enqueue":
            continue
        if record.kind == "end":
            break
        members.add(record.id)
        found.append(record)
    return found


def _modules(rooms: Sequence[str]) -> dict[str, str]:
    """The full names of the modules in rooms, by their short names, such as "leader_election"."""
    packages = [importlib.import_module(f"kcontrol.{room}") for room in rooms]
    found = ((package.__name__, module) for package in packages for module in pkgutil.iter_modules(package.__path__))
    return {module.name: f"{package}.{module.name}" for package, module in found if not module.ispkg}


def _functions(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == module.__name__:
            yield name, value
