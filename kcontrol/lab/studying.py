"""What a chapter looks at: candidates of an election, the steps of a handler, outages, the controller's own text."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from kcontrol import controller
from kcontrol.errors import UserError
from kcontrol.generations import Rules, rules
from kcontrol.lab import by_release, electing, hearing, outages, tables, trials
from kcontrol.lab.frames import Wide
from kcontrol.lab.saying import Shown
from kcontrol.runtime.journal import Record
from kcontrol.views import text

if TYPE_CHECKING:
    from types import ModuleType

HANDLED = {"at": tables.TIME, "kind": "string", "what": "string"}


class Studies:
    """Read only: every method is about a journal, or about the rules that made it."""

    @property
    @abstractmethod
    def records(self) -> Sequence[Record]: ...

    @property
    @abstractmethod
    def state(self) -> dict[str, Any]: ...

    def _rules(self) -> Rules:
        return rules(self.records[0].fields["release"])

    def _allows_unclean(self) -> bool:
        """What the brokers' own settings say; a journal alone knows the release's default."""
        return self._rules().unclean_default

    def candidates(self, partition: str) -> electing.Strip:
        """The replicas of a partition in the order of the assignment: who leads, who would be next, and why not the others.

        Raises UserError, listing the partitions, for one that is not there.
        """
        return electing.candidates(self.state, partition, self._rules(), self._allows_unclean())

    def outages(self) -> pd.DataFrame:
        """One row per partition and time without a living leader; see `outages.outages`."""
        return outages.outages(self.records)

    def handled(self, event: str, broker: int | None = None, *, memory: bool = False) -> pd.DataFrame:
        """What a handler of an event did, one row per read, write, transition and request, in order.

        With `memory` there are rows for what it learnt too. It is the last one that did more than read, on the `broker` if one is
        named. Raises UserError, listing what was handled, if there was none.
        """
        begins = [r for r in self.records if r.kind == "begin" and broker in (None, r.id.node)]
        stories = [_story(self.records, begin) for begin in begins if _event(begin) == event]
        if not stories:
            names = ", ".join(sorted({_event(r) for r in begins})) or "nothing yet"
            raise UserError(f"No broker has handled {event!r} here; handled was {names}.")
        story = next((found for found in reversed(stories) if any(r.kind not in ("read", "learn") for r in found)), stories[-1])
        rows = (
            {"id": str(r.id), "at_ms": r.at_ms, "kind": r.kind, "what": text.say(r)} for r in story if memory or r.kind != "learn"
        )
        return Wide(tables.table(rows, tables.timed(HANDLED, self.records), "id"))

    def handlers(self) -> pd.DataFrame:
        """One row per znode and event: what has to happen, Kafka's handler, the event, the controller's state, who listens."""
        return hearing.handlers(self._rules())

    def heard(self, broker: int | None = None) -> pd.DataFrame:
        """One row per event that a controller module has got: where it came from, how long it waited, and what became of it.

        Raises UserError for a recording of real brokers, which says nothing of what they heard.
        """
        return hearing.heard(self.records, broker)

    @staticmethod
    def generations(*rules: str) -> pd.DataFrame:
        """One row per rule that differs between releases, one column per release in which one of these changed.

        Raises UserError, listing the rules, for one that does not exist, and where none is named.
        """
        return by_release.generations(rules)

    @staticmethod
    def elections() -> pd.DataFrame:
        """One row per kind of election: when it is held, who leads, whose order decides, and who is told."""
        return electing.elections()

    @staticmethod
    def trials(rules: Mapping[str, trials.Rule], runs: int = 100, seed: int = 1) -> pd.DataFrame:
        """Rules for the offline election, judged by what became of partitions in random failures; see `trials.trials`."""
        return trials.trials(rules, runs, seed)

    @staticmethod
    def source(name: str) -> Shown:
        """The text of a function of the controller, such as "election.offline"; one that a module keeps to itself is shown too.

        Raises UserError, listing what there is, for a name that means nothing.
        """
        module, _, function = name.partition(".")
        if module not in _modules():
            raise UserError(f"The controller has no room {module!r}; there are {', '.join(_modules())}.")
        found = dict(_functions(importlib.import_module(f"{controller.__name__}.{module}")))
        public = [name for name in found if not name.startswith("_")]
        if function not in found:
            raise UserError(f"There is no function {function!r} in {module}; there are {', '.join(public)}.")
        return Shown(inspect.getsource(found[function]).rstrip())


def _event(begin: Record) -> str:
    return str(begin.plain().fields["event"])


def _story(records: Sequence[Record], begin: Record) -> list[Record]:
    """What one handler did, in order, but for what it put into queues."""
    members, found = {begin.id}, list[Record]()
    for record in records[records.index(begin) + 1 :]:
        if record.cause not in members or record.id[:2] != begin.id[:2] or record.kind == "enqueue":
            continue
        if record.kind == "end":
            break
        members.add(record.id)
        found.append(record)
    return found


def _modules() -> list[str]:
    return [found.name for found in pkgutil.iter_modules(controller.__path__)]


def _functions(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == module.__name__:
            yield name, value
