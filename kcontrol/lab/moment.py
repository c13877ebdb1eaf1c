"""A run as it stands after one of its records: tables, reasons and pictures, all from the journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from kcontrol.errors import UserError
from kcontrol.lab import beside, parting, subjects, tables
from kcontrol.lab.studying import Studies
from kcontrol.lab.workspace import PROJECT
from kcontrol.pipeline import recording, replay
from kcontrol.runtime import journal
from kcontrol.runtime.history import History, State
from kcontrol.runtime.journal import Record
from kcontrol.views import text

if TYPE_CHECKING:
    import graphviz

    from kcontrol.transitions import TransitionTable


class Moment(Studies):
    """Read only: `records` are a journal up to one of its records, `name` is what the run is called."""

    def __init__(self, records: Sequence[Record], name: str = "run", state: State | None = None) -> None:
        self._records, self.name, self._state = records, name, state
        self._history = History(records)

    @property
    def records(self) -> Sequence[Record]:
        """The journal, in the order in which its records were made."""
        return self._records

    @property
    def state(self) -> State:
        """What `runtime.fold` makes of the journal: znodes, brokers, channels."""
        return self._history.state if self._state is None else self._state

    # ---------------------------------------------------------------- tables

    def partitions(self) -> pd.DataFrame:
        """One row per partition, as ZooKeeper has it, by name such as `t-0`."""
        return tables.partitions(self.state)

    def brokers(self) -> pd.DataFrame:
        """One row per broker, by id."""
        return tables.brokers(self.records, self.state)

    def znodes(self) -> pd.DataFrame:
        """One row per znode, by path."""
        return tables.znodes(self.state)

    def requests(self) -> pd.DataFrame:
        """One row per request of a controller to a broker, in the order of sending."""
        return tables.requests(self.records, self.state)

    def journal(self, kind: str | None = None, words: str | None = None) -> pd.DataFrame:
        """One row per record, by id; with a kind such as "change" those alone, with a column per field.

        With `words="kafka"` there is a column `log` too: the lines that Kafka's release writes to its own logs at this record,
        empty where it writes none. Raises UserError, listing what there is, for another kind or other words.
        """
        if words not in (None, "kafka"):
            raise UserError(f"The journal cannot be had in the words {words!r}; there is 'kafka', the words of Kafka's own logs.")
        kinds = dict.fromkeys(record.kind for record in self.records)
        if kind is not None and kind not in kinds:
            raise UserError(f"The journal has no record of kind {kind!r}; it has {', '.join(sorted(kinds))}.")
        found = tables.journal(self.records, text.say, kind)
        return found if words is None else found.assign(log=tables.logged(self.records, kind).set_axis(found.index))

    def diff(self, before: object, after: object = -1) -> pd.DataFrame:
        """What differs between the states after two records: one row per znode and per belief of a broker."""
        return tables.diff(*(self._history.at(subjects.position(self.records, to)) for to in (before, after)))

    # ---------------------------------------------------------------- other moments

    def rewind(self, to: object) -> Moment:
        """The same run after an earlier record: an id such as "2.1.58", or a number in the journal, negative from the end."""
        at = subjects.position(self.records, to)
        return Moment(self.records[: at + 1], f"{self.name} at {self.records[at].id}", self._history.at(at))

    def compare(self, other: Moment) -> parting.Parting | beside.Beside:
        """The first record at which two runs part, in words and as a table.

        If one of them is a recording of real brokers, the first difference by the rule of the recordings, and both side by side.
        Raises UserError where the other one then follows no scenario.
        """
        if not isinstance(other, Moment):
            raise UserError(f"{other!r} is no run: compare with a lab, with Lab.open(file) or with Lab.play(recording).")
        if beside.is_recorded(self.records) or beside.is_recorded(other.records):
            return beside.beside((self.name, other.name), self.records, other.records)
        return parting.parting((self.name, other.name), self.records, other.records)

    def save(self, path: str | Path) -> None:
        """Write the whole journal to a file. Raises UserError where that cannot be done."""
        journal.write(self.records, path)

    # ---------------------------------------------------------------- reasons and pictures

    def why(self, what: object) -> graphviz.Digraph:
        """The chain of causes of "leader of t-0", "isr of t-0", "controller", a znode's path, or a record's id."""
        from kcontrol.views import diagrams

        return diagrams.why(self.records, subjects.record(self.records, what).id)

    def diagram(self, machine: str = "partition") -> graphviz.Digraph:
        """The transition table of a machine, "partition" or "replica", with how many are in each state at the controller."""
        from kcontrol.views import diagrams

        return diagrams.machine(
            self._table(machine), counts=Counter(tables.states_at_the_controller(self.state, machine).values())
        )

    def _table(self, machine: str) -> TransitionTable:
        from kcontrol.controller import partition_machine, replica_machine

        found = {"partition": partition_machine.PARTITION_TRANSITIONS, "replica": replica_machine.REPLICA_TRANSITIONS}
        if machine not in found:
            raise UserError(f"There is no diagram of {machine!r}; there are {' and '.join(map(repr, found))}.")
        return found[machine]

    def summary(self) -> str:
        """The state in one line."""
        return text.summary(self.state, self.records[0].fields["brokers"])

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The viewer, and a still picture and one line for where no widget is shown."""
        from kcontrol.views.viewer import Viewer

        return Viewer(records=self.records, title=self.name)._repr_mimebundle_(**kwargs)

    def __repr__(self) -> str:
        return f"{self.name}: {self.summary()}; {len(self.records)} records"


RECORDINGS = PROJECT / "tests" / "golden" / "recordings"


def open_journal(path: str | Path) -> Moment:
    """A run that a file holds, ours or a recording of real brokers. Raises UserError where the file is neither.

    The recordings that come with the project go by release and scenario, as in "2.8.2/isr-order".
    """
    shipped = RECORDINGS / f"{path}.json"
    path = shipped if shipped.is_file() and not Path(path).exists() else path
    records = recording.load(path) if recording.is_recording(path) else None
    if records is None:
        return Moment(journal.read(path), Path(path).stem)
    return Moment(replay.to_journal(records), f"Kafka {records['release']}, {records['scenario']}")
