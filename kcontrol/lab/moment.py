"""A run as it stands after one of its records: tables, reasons and pictures, all from the journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from kcontrol.errors import UserError
from kcontrol.lab import (
    arguments,
    beside,
    deleting,
    electing,
    grouping,
    hosting,
    listing,
    logs,
    moving,
    old_runs,
    parting,
    remembering,
    statistics,
    stored,
    subjects,
    tables,
)
from kcontrol.lab.saying import Shown, warn
from kcontrol.lab.studying import Studies
from kcontrol.model import TopicPartition
from kcontrol.pipeline import recording, replay
from kcontrol.runtime import journal_file
from kcontrol.runtime.history import History, State
from kcontrol.runtime.journal import Journal, Record
from kcontrol.views import text

if TYPE_CHECKING:
    import graphviz

    from kcontrol.transitions import TransitionTable


class Moment(Studies):
    """Read only: `records` are a journal up to one of its records, `name` is what the run is called."""

    def __init__(self, records: Sequence[Record] | Journal, name: str = "run", state: State | None = None) -> None:
        self._records, self.name, self._state = records, name, state
        self._history = History(())

    @property
    def records(self) -> Sequence[Record]:
        """The journal, in the order in which its records were made."""
        return self._records.records if isinstance(self._records, Journal) else self._records

    @property
    def _past(self) -> History:
        self._history.records = self.records  # a journal that goes on spells its last records out when it is asked for them
        return self._history

    @property
    def state(self) -> State:
        """What `runtime.fold` makes of the journal: znodes, brokers, channels."""
        return self._past.state if self._state is None else self._state

    # ---------------------------------------------------------------- tables

    def partitions(self) -> pd.DataFrame:
        """One row per partition, as ZooKeeper has it, by name such as `t-0`."""
        return tables.partitions(self.state)

    def reassignments(self) -> pd.DataFrame:
        """One row per partition that is being reassigned: where it is, where it is to be, and who is not in sync yet."""
        return moving.reassignments(self.state)

    def stored(self, partition: str) -> pd.DataFrame:
        """What ZooKeeper has held of a partition, one row per write: who should have it, who is added, who goes, who leads.

        Raises UserError, listing the partitions, for one that is not there.
        """
        return stored.stored(self.records, TopicPartition.parse(electing.find(self.state, partition).name))

    def deletions(self) -> pd.DataFrame:
        """One row per replica of each topic that is to be deleted: the deletion manager's sets beside the replica's state."""
        return deleting.deletions(self.state)

    def replicas(self) -> pd.DataFrame:
        """One row per replica: the controller's state of it, and what its broker has been told; see `hosting.replicas`."""
        return hosting.replicas(self.state)

    def told(self, partition: str) -> pd.DataFrame:
        """One row per place that says who leads a partition, from ZooKeeper to each broker's caches; see `hosting.told`.

        Raises UserError for a partition that is not there.
        """
        return hosting.told(self.state, partition)

    def brokers(self) -> pd.DataFrame:
        """One row per broker, by id."""
        return tables.brokers(self.records, self.state)

    def znodes(self) -> pd.DataFrame:
        """One row per znode, by path."""
        return tables.znodes(self.state)

    def watches(self) -> pd.DataFrame:
        """One row per watch that a living broker has at ZooKeeper."""
        return tables.watches(self.records)

    def controllers(self) -> pd.DataFrame:
        """One row per content that `/controller` has had: whom it named, under which epoch, and how it came to its end."""
        return tables.controllers(self.records)

    def memory(self, broker: int | None = None) -> pd.DataFrame:
        """What a broker's controller part has in memory, under our names and Kafka's; the active one's where none is named."""
        return remembering.memory(self.state, broker)

    def moves(self, machine: str = "partition") -> pd.DataFrame:
        """The legal moves of a machine, "partition" or "replica": a row per state that is left, a column per state reached."""
        return remembering.moves(self._table(machine))

    def requests(self) -> pd.DataFrame:
        """One row per request of a controller to a broker, in the order of sending."""
        return tables.requests(self.records, self.state)

    def members(self) -> pd.DataFrame:
        """One row per member of a consumer group, as its coordinator believes."""
        return grouping.members(self.state)

    def offsets(self) -> pd.DataFrame:
        """One row per offset that a group has committed."""
        return grouping.offsets(self.state)

    def log(self, partition: str) -> pd.DataFrame:
        """One row per replica of a partition, dead brokers included, one column per offset, with the values of the records.

        Raises UserError where no logs are kept, or for a partition that has none.
        """
        return logs.log(self.state, partition)

    def read(self, partition: str, broker: int | None = None) -> pd.DataFrame:
        """What a consumer sees: the records below the high watermark of the leader, or of the broker that is asked.

        Raises UserError where no logs are kept, or where nobody leads.
        """
        return logs.read(self.state, partition, broker)

    def statistics(self) -> pd.DataFrame:
        """Kafka's own metrics of the controller: one row per metric and attribute, one column per broker that runs."""
        return statistics.table(statistics.statistics(self.records))

    def prometheus(self) -> Shown:
        """The same as text that Prometheus reads."""
        return Shown(statistics.exposition(statistics.statistics(self.records), self.name))

    def journal(self, kind: str | None = None, words: str | None = None) -> pd.DataFrame:
        """One row per record, by id; with a kind such as "change" those alone, with a column per field.

        With `words="kafka"` there is a column `log` too: the lines that Kafka's release writes to its own logs at this record,
        empty where it writes none. Raises UserError, listing what there is, for another kind or other words.
        """
        if words not in (None, "kafka"):
            raise UserError(f"The journal cannot be had in the words {words!r}; there is 'kafka', the words of Kafka's own logs.")
        kinds = list(dict.fromkeys(record.kind for record in self.records))
        if kind is not None and kind not in kinds:
            raise UserError(f"The journal has no record of kind {kind!r}; it has {', '.join(sorted(kinds))}.")
        found = tables.journal(self.records, text.say, kind)
        return found if words is None else found.assign(log=tables.logged(self.records, kind).set_axis(found.index))

    def diff(self, before: object, after: object = -1) -> pd.DataFrame:
        """What differs between the states after two records: one row per znode and per belief of a broker."""
        return tables.diff(*(self._past.at(subjects.position(self.records, to)) for to in (before, after)))

    # ---------------------------------------------------------------- other moments

    def rewind(self, to: object) -> Moment:
        """The same run after an earlier record: an id such as "2.1.58", or a number in the journal, negative from the end."""
        at = subjects.position(self.records, to)
        return Moment(self.records[: at + 1], f"{self.name} at {self.records[at].id}", self._past.at(at))

    def compare(self, one: Moment | str, other: Moment | str | None = None) -> parting.Parting | beside.Beside:
        """Return the first decision about a partition, and the first record, in which two runs differ, and both ends.

        `compare(other)` takes this run and another one, `compare(one, other)` any two; a branch may be named by its name. If one
        of them is a recording of real brokers, it is the first difference by the rule of the recordings. Raises UserError for
        what is no run, listing the branches, and where one of two runs is a recording and the other follows no scenario.
        """
        (a, here), (b, there) = (self._named(run) for run in ((self, one) if other is None else (one, other)))
        if beside.is_recorded(here.records) or beside.is_recorded(there.records):
            return beside.beside((a, b), here.records, there.records)
        return parting.parting(parting.labels((a, b), (here, there)), here.records, there.records)

    @property
    def changed_settings(self) -> dict[str, str]:
        """The settings that differ from the release's defaults, in words, by name; a journal alone does not hold them."""
        return {}

    def _named(self, run: object) -> tuple[str, Moment]:
        """Return a run with its name."""
        if isinstance(run, Moment):
            return run.name, run
        raise UserError(f"{run!r} is no run: compare with a lab, with Lab.open(file) or with Lab.play(recording).")

    def save(self, path: str | Path) -> None:
        """Write the whole journal to a file, which is then never cleared. Raises UserError where that cannot be done."""
        place = arguments.path(path, "run.jsonl")
        journal_file.write(self.records, place)
        old_runs.keep(place)

    # ---------------------------------------------------------------- reasons and pictures

    def why(self, what: object) -> graphviz.Digraph:
        """The chain of causes of "leader of t-0", "isr of t-0", "controller", a znode's path, or a record's id."""
        from kcontrol.views import diagrams

        return diagrams.why(self.records, subjects.record(self.records, what).id)

    def diagram(self, machine: str = "partition") -> graphviz.Digraph:
        """The transition table of a machine, "partition", "replica" or "group", with how many are in each state.

        Partitions and replicas are counted at the controller, groups at their coordinators. Or a picture of the election: one
        of `pictures.PICTURES`. Raises UserError, listing them all, for anything else.
        """
        from kcontrol.lab import pictures
        from kcontrol.views import diagrams

        machine = arguments.words(machine, "What is drawn", "partition")
        if machine in pictures.PICTURES:
            return pictures.PICTURES[machine](self.records, self.state)
        found = grouping.states(self.state) if machine == "group" else tables.states_at_the_controller(self.state, machine)
        return diagrams.machine(self._table(machine), counts=Counter(found.values()))

    def _table(self, machine: str) -> TransitionTable:
        from kcontrol.controller import partition_machine, replica_machine

        found = {"partition": partition_machine.PARTITION_TRANSITIONS, "replica": replica_machine.REPLICA_TRANSITIONS}
        machine = arguments.words(machine, "A machine", "partition")
        found["group"] = grouping.table(self.records[0].fields["release"])
        if machine not in found:
            from kcontrol.lab.pictures import PICTURES

            raise UserError(f"There is no diagram of {machine!r}; there are {text.listed(map(repr, [*found, *PICTURES]), 20)}.")
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


def open_journal(path: str | Path) -> Moment:
    """Return the run that a file holds, ours or a recording of real brokers; of a journal that ends early, say so on stderr.

    Raises UserError where the file is neither, or is damaged.

    The recordings that come with the project go by release and scenario, as in "2.8.2/isr-order".
    """
    try:
        path = listing.file_of(arguments.path(path, "run.jsonl"))
    except OSError as problem:
        raise UserError(f"{arguments.shown(str(path))} cannot be opened: {problem.strerror}.") from None
    if recording.is_recording(path):
        found = recording.load(path)
        return Moment(_checked(replay.to_journal(found), path), f"Kafka {found['release']}, {found['scenario']}")
    records, is_whole = journal_file.load(path)
    if not is_whole:
        warn(
            f"The journal {path} ends early, after record {records[-1].id}: its last line, which counts the records, is missing."
        )
    return Moment(records, Path(path).stem)


def _checked(records: list[Record], path: str | Path) -> list[Record]:
    """Return the records of a recording. Raises UserError where they contradict each other."""
    try:
        return list(journal_file.check(records))
    except journal_file.WRONG as problem:
        raise UserError(f"The recording {path} contradicts itself: {problem}.") from None
