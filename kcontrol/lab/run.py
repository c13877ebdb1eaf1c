"""Makes tables, pictures and explanations of a run that is only read, from its journal up to a chosen record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kcontrol.core.controller_rules import Rules, rules
from kcontrol.core.errors import UserError
from kcontrol.install import run_cleanup
from kcontrol.journal import journal_file
from kcontrol.journal.journal import Journal, Record
from kcontrol.journal.state_history import History, State
from kcontrol.lab import catalogue, record_lookup
from kcontrol.lab.comparison import divergence
from kcontrol.lab.groups import offsets_topic, waiting
from kcontrol.lab.groups import recording_diff as group_recording_diff
from kcontrol.lab.support import arguments, replacements
from kcontrol.lab.support.calls import Commands
from kcontrol.lab.support.late import pd
from kcontrol.lab.support.output import warn
from kcontrol.lab.tables import groups, journal_tables, recording_diff
from kcontrol.recordings.door import group_recording, group_to_journal, recording, to_journal
from kcontrol.views import group_state, text

if TYPE_CHECKING:
    import graphviz

    from kcontrol.core.transitions import TransitionTable
    from kcontrol.lab.tables.run_tables import Tables
    from kcontrol.views.assignment_matrix import AssignmentMatrix
    from kcontrol.views.compared_run import ComparedRun
    from kcontrol.views.group_strip import GroupStrip
    from kcontrol.views.offsets_topic_picture import OffsetsTopicPicture
    from kcontrol.views.purgatory_picture import PurgatoryPicture
    from kcontrol.views.viewer import Viewer


class Run(Commands, owner="run"):
    """A run that is only read: `records` are a journal from its first record to its last; `name` is the run's label."""

    # `state` is the state after the last record, None if it is to be computed from the records.
    def __init__(self, records: Sequence[Record] | Journal, name: str = "run", state: State | None = None) -> None:
        self._records, self.name, self._state = records, name, state
        self._history = History(())

    @property
    def records(self) -> Sequence[Record]:
        """The journal's own list of records, not a copy, in the order in which they were made."""
        return self._records.records if isinstance(self._records, Journal) else self._records

    @property
    def _past(self) -> History:
        self._history.records = self.records  # a growing journal completes its last records only when its list is read
        return self._history

    @property
    def state(self) -> State:
        """The state of the cluster after the last record, as a dict.

        The docstring of `journal.fold.Fold` describes the parts of the dict, such as `znodes`.
        """
        return self._past.state if self._state is None else self._state

    @property
    def _played(self) -> str:
        return str(self.records[0].fields["release"])

    def _rules(self) -> Rules:
        return rules(self._played)

    def _allows_unclean(self) -> bool:
        """Return whether the run's release allows unclean elections by default."""
        # A journal does not have the setting of the brokers.
        return self._rules().unclean_default

    # ---------------------------------------------------------------- tables

    @property
    def tables(self) -> Tables:
        """The tables of this run; `lab.tables` on a line of its own lists them."""
        from kcontrol.lab.tables.run_tables import Tables

        return Tables(self)

    def partitions(self) -> pd.DataFrame:
        """Return one row per partition, as ZooKeeper stores it; the index is the name, such as `t-0`."""
        return journal_tables.partitions(self.state)

    def brokers(self) -> pd.DataFrame:
        """Return one row per broker, indexed by id: process, registration, epochs, names of the handled and the queued events.

        Column `controller`: the znode `/controller` names the broker; `believes_so`: the broker is controller in its own
        memory.
        """
        return journal_tables.brokers(self.records, self.state)

    def journal(self, kind: str | None = None, words: str | None = None) -> pd.DataFrame:
        """Return one row per journal record, indexed by id, with a sentence about it.

        kind   such as "change": only these records, with one column per field
        words  "kafka": a column `log` has the lines that Kafka writes to its log files at the record

        Raises UserError, which lists the legal values, for an unknown kind or other words.
        """
        if words not in (None, "kafka"):
            raise UserError(f"words cannot be {words!r}: it is 'kafka', for the lines of Kafka's log files, or None.")
        kinds = list(dict.fromkeys(record.kind for record in self.records))
        if kind is not None and kind not in kinds:
            raise UserError(f"The journal has no record of kind {kind!r}; its kinds are {', '.join(sorted(kinds))}.")
        found = journal_tables.journal(self.records, text.sentence, kind)
        return found if words is None else found.assign(log=journal_tables.logged(self.records, kind).set_axis(found.index))

    # ---------------------------------------------------------------- other moments

    def rewind(self, to: object) -> Run:
        """Return this run up to and including an earlier record: an id such as "2.1.58", or a position in the journal.

        -1 is the last record. Raises UserError for an unknown record.
        """
        at = record_lookup.position(self.records, to)
        return Run(self.records[: at + 1], f"{self.name} at {self.records[at].id}", self._past.at(at))

    def compare(self, one: Run | str, other: Run | str | None = None) -> divergence.Divergence | recording_diff.RecordingDiff:
        """Compare two runs: the first decision on a leader or ISR that differs, the first record that differs, the last states.

        compare(other)       this run and another run
        compare(one, other)  any two runs; a branch may be given by its name

        With a recording of real brokers, the result is a RecordingDiff. Raises UserError for a value that is not a run.
        """
        # Leader epochs, elections without a leader, and deletions of partitions are compared like leaders and ISRs.
        (a, here), (b, there) = (self._named(run) for run in ((self, one) if other is None else (one, other)))
        if any(group_recording_diff.is_recorded_group(run.records) for run in (here, there)):
            return group_recording_diff.group_recording_diff((a, b), here.records, there.records)
        # A RecordingDiff shows the first difference outside what Kafka leaves open, such as the order of two brokers' writes.
        # Both runs must have been played from a scenario.
        if recording_diff.is_recorded(here.records) or recording_diff.is_recorded(there.records):
            return recording_diff.recording_diff((a, b), here.records, there.records)
        return divergence.divergence(divergence.labels((a, b), (here, there)), here.records, there.records)

    @property
    def _changed_settings(self) -> dict[str, str]:
        """{"min_insync_replicas": "min.insync.replicas=2"}, or {} for a run that was opened from a file."""
        return {}

    def _named(self, run: object) -> tuple[str, Run]:
        """(label, run). Raises UserError for a value that is not a run; `Lab` accepts the name of a branch too."""
        if isinstance(run, Run):
            return run.name, run
        raise UserError(f"{run!r} is not a run: compare with a lab, with Lab.open(file) or with Lab.play(recording).")

    def save(self, path: str | Path) -> None:
        """Write the whole journal to the file `path`, in place of an existing file.

        Raises UserError if the file cannot be written.
        """
        place = arguments.path(path, "run.jsonl")
        journal_file.write(self.records, place)
        # In the folder of kept runs the oldest runs are deleted from time to time, but not this file.
        run_cleanup.keep(place)

    def save_logs(self, folder: str | Path) -> None:
        """Write Kafka's log files of this run into a new folder, for `Lab.open_logs`: server.log and others for each broker.

        Raises UserError if the folder exists, or if it cannot be written.
        """
        from kcontrol.lab import saved_logs

        saved_logs.save_logs(self.records, arguments.path(folder, "logs"))

    # ---------------------------------------------------------------- reasons and pictures

    def why(self, what: object) -> graphviz.Digraph:
        """Draw the causes of the record with the id `what`, or of the last change of the value `what`.

        Values are "leader of t-0", "controller", a znode's path, "generation of billing" and others. Raises UserError, which
        lists them, for any other text.
        """
        from kcontrol.views import diagrams

        return diagrams.why(self.records, record_lookup.record(self.records, what).id)

    def diagram(self, machine: str = "partition") -> graphviz.Digraph:
        """Draw the transition table "partition", "replica" or "group", with the number of partitions or groups in each state.

        Raises UserError, which lists all pictures, for an unknown name.
        """
        from kcontrol.lab.pictures import election_pictures
        from kcontrol.views import diagrams

        arguments.one_of(machine, (*replacements.MACHINES, *election_pictures.PICTURES), "diagram of")
        # Any other name of PICTURES draws that picture.
        if machine in election_pictures.PICTURES:
            return election_pictures.PICTURES[machine](self.records, self.state)
        table = self._table(machine)
        if machine == "group":
            names = group_state.state_names(table, self._played)
            return diagrams.machine(table, counts=Counter(groups.states(self.state).values()), names=names)
        found = journal_tables.states_at_the_controller(self.state, machine)
        return diagrams.machine(table, counts=Counter(found.values()))

    def group_strip(
        self, group: str | None = None, beside: Mapping[str, Run] | None = None, *, coordinators: bool = False
    ) -> GroupStrip:
        """Return what happened to a consumer group: a picture with a lane for each member, and its text.

        group         by default the only group of the run
        beside        other runs by the titles of their strips; these strips stand below the strip of this run
        coordinators  whether each strip begins with the leader of the group's partition, and the brokers that load or own it

        Raises UserError, listing the groups, for an unknown group.
        """
        from kcontrol.views.coordinator_strip import CoordinatorStrip
        from kcontrol.views.group_strip import GroupStrip

        kind = CoordinatorStrip if coordinators else GroupStrip
        others = [kind(run.records, run._group(group), title) for title, run in _by_title(beside).items()]
        return kind(self.records, self._group(group), self.name if others else "", others)

    def _group(self, group: str | None) -> str:
        """Return `group`, or the only group of this run if `group` is None.

        Raises UserError, listing the groups, for an unknown name, and for None if there is not exactly one group.
        """
        from kcontrol.views import group_moments

        known = group_moments.groups(self.state)
        if group is None and len(known) == 1:
            group = known[0]
        if group not in known:
            listed = f"its groups are {text.listed(known, 20)}" if known else "it has no consumer groups"
            unknown = f"There is no group {text.clean(repr(group), 100)} in this run"
            raise UserError(f"{'Name one group of this run' if group is None else unknown}; {listed}.")
        return group

    def beside(self, other: Run) -> Viewer:
        """Return a viewer that shows this run and another run side by side, such as recordings of two releases.

        Raises UserError for a value that is not a run.
        """
        from kcontrol.views.viewer import Viewer

        return Viewer(records=self.records, title=self.name, beside=self._compared(other))

    def _compared(self, other: Run) -> ComparedRun:
        name, run = self._named(other)
        return name, run.records, divergence.divergence((self.name, name), self.records, run.records).parted

    def group_matrix(self, group: str | None = None, beside: Mapping[str, Run] | None = None) -> AssignmentMatrix:
        """Return a picture of a group's last assignment, members x partitions; a * marks a partition that has changed its owner.

        group   by default the only group of the run
        beside  other runs by title; their matrices stand beside the matrix of this run

        Raises UserError, listing the groups, for an unknown group.
        """
        from kcontrol.views.assignment_matrix import AssignmentMatrix, matrix

        name = self._group(group)
        others = [matrix(run.records, run._group(group), title) for title, run in _by_title(beside).items()]
        return AssignmentMatrix([matrix(self.records, name), *others])

    def offsets_partition(self, partition: str | None = None) -> OffsetsTopicPicture:
        """Return a picture of an offsets-topic partition: its log, its coordinator's cache, and the cache that a load would give.

        `partition`, such as "__consumer_offsets-3", is by default the first with a record. Raises UserError if unknown.
        """
        return offsets_topic.picture(self.state, self._played, partition, self.records[-1].at_ms)

    def purgatory(self, name: str = "Heartbeat", broker: int | None = None) -> PurgatoryPicture:
        """Return a picture of a broker's purgatory, "Heartbeat" or "Rebalance": watch lists, counters and timing wheel.

        By default the broker is the one where an operation began last. Raises UserError without `Lab(purgatory=True)`, or
        without operations.
        """
        return waiting.purgatory(self.records, name, broker)

    def _table(self, machine: str) -> TransitionTable:
        return replacements.table(machine, self.records[0].fields["release"])

    def summary(self) -> str:
        """Return the cluster's state in one line, such as "2 of 3 brokers, broker 1 is controller (epoch 1), ..."."""
        return text.summary(self.state, self.records[0].fields["brokers"])

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the viewer's data and metadata by MIME type, with a picture and a line of text for frontends without widgets."""
        from kcontrol.views.viewer import Viewer

        return Viewer(records=self.records, title=self.name)._repr_mimebundle_(**kwargs)

    def __repr__(self) -> str:
        return f"{self.name}: {self.summary()}; {len(self.records)} records"


def open_journal(path: str | Path) -> Run:
    """Return the run in `path`, read-only: a journal's or a recording's file, or the name of a shipped recording.

    A shipped recording has a name such as "2.8.2/isr-order". Raises UserError for any other file.
    """
    try:
        path = catalogue.file_of(arguments.path(path, "run.jsonl"))
    except OSError as problem:
        raise UserError(f"{arguments.shown(str(path))} cannot be opened: {problem.strerror}.") from None
    if recording.is_recording(path):
        content = recording.content_of(path)
        if group_recording.is_of_group(content):
            found = group_recording.parse(content, str(path))
            records, scenario = group_to_journal.to_journal(found), group_recording.scenario(found)
        else:
            found = recording.parse(content, str(path))
            records, scenario = to_journal.to_journal(found), found["scenario"]
        return Run(_checked(records, path), f"Kafka {found['release']}, {scenario}")
    records, is_whole = journal_file.load(path)
    if not is_whole:
        warn(
            f"The journal {path} ends early, after record {records[-1].id}: its last line, which counts the records, is missing."
        )
    return Run(records, Path(path).stem)


def _checked(records: list[Record], path: str | Path) -> list[Record]:
    """Raises UserError if the records contradict each other: for example, a missing znode is changed."""
    try:
        return list(journal_file.check(records))
    except journal_file.WRONG as problem:
        raise UserError(f"The recording {path} contradicts itself: {problem}.") from None


def _by_title(beside: Mapping[str, Run] | None) -> Mapping[str, Run]:
    """{} for None. Raises UserError if `beside` does not map texts to runs."""
    found = arguments.mapping(beside, "Runs beside this one", '{"0.9": Lab.open("0.9.0.1/group/leader-leaves")}')
    for title, run in found.items():
        arguments.words(title, "A title", "0.9")
        if not isinstance(run, Run):
            raise UserError(f"{run!r:.80} is not a run: pass a lab, Lab.open(file) or Lab.play(recording).")
    return found
