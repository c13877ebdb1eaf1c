"""The public class `Lab`: a cluster to open, run, break, rewind and branch."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from operator import index
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

from kcontrol.cluster import actions, consumer_life
from kcontrol.cluster.actions import PossibleAction
from kcontrol.cluster.world import Action, World
from kcontrol.core.errors import UserError
from kcontrol.journal.journal import Record, why
from kcontrol.lab import branches, catalogue, open_world, opened_logs, record_lookup
from kcontrol.lab.comparison import divergence
from kcontrol.lab.exercises import predictions
from kcontrol.lab.groups import plays, responses
from kcontrol.lab.history.kept_runs import Runs
from kcontrol.lab.namespaces import Disks, Group, Network, Zk
from kcontrol.lab.operations import Operations
from kcontrol.lab.run import Run, open_journal
from kcontrol.lab.run_files import RunFile
from kcontrol.lab.support import arguments, failures, replacements, requested_settings, run_until
from kcontrol.lab.support.output import say, show_sentences
from kcontrol.lab.sweeps import door as sweeps
from kcontrol.lab.tables import reassignments, recording_diff
from kcontrol.lab.tables.run_tables import LabTables
from kcontrol.lab.topic_creation import Assignment
from kcontrol.pipeline.door import LOCAL
from kcontrol.recordings.door import group_player, player
from kcontrol.views import text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kcontrol.core.effects import Znode
    from kcontrol.core.transitions import TransitionTable
    from kcontrol.lab.observed_cluster import Observed
    from kcontrol.views.viewer import Viewer


_open: weakref.WeakSet[Lab] = weakref.WeakSet()


class Lab(Operations, opened_as="Lab"):
    """A cluster of brokers with its controller, and its journal.

    Each command below returns the lab and lets no time go on; run() does.

    Time      run(until, alive)  step(action)  actions()  run_event(broker)
    Brokers   start  kill  terminate  freeze  thaw  expire_session
    Topics    create_topic  alter_topic  delete_topic  reassign  elect_preferred
    Clients   produce  commit
    Replicas  shrink_isr
    Timers    fire_timer
    Look      partitions()  brokers()  journal(kind)  records  state  summary()
    Explain   why(what)  diagram(machine)  viewer  purgatory(name)
              search(promise, budget, faults)
              group_strip(group, beside)  group_matrix(group, beside)
              offsets_partition(partition)
    Compare   branch(name, at)  branches  compare(one, other)  without(record)
              beside(other)  rewind(to)
    Files     save(path)  save_logs(folder)  name  close()  spark()
    Runs      Lab.open(file)  Lab.open_logs(folder)  Lab.play(recording)
              Lab.observe(address)  Lab.recordings()  Lab.runs(folder)
              Lab.sweep(scenario)

    The rest is in namespaces; evaluated in a cell, each lists its commands:

    lab.tables   every other table: replicas, znodes, requests, watches ...
    lab.zk       znodes: get  set  create  delete  address
    lab.network  requests: drop  duplicate  fetch_timeout
    lab.disks    logs: lose_tail  fail_log_dir
    lab.group    consumers and their groups: join  sync  heartbeat  leave ...

    Without a cluster: from kcontrol import exercises, journal, rules

    docs/lab.md shows these in the order in which one needs them;
    help(Lab.__init__) has the arguments of Lab(...).
    """

    def __init__(
        self,
        brokers: int | Sequence[int] = 3,
        release: str = "2.8",
        seed: int = 7,
        world: str = "simulated",
        zookeeper: str | None = None,
        *,
        rows: Mapping[Any, Callable[..., Any]] | None = None,
        strategies: Mapping[str, Callable[..., Any]] | None = None,
        rules: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        topics: Mapping[str, Assignment] | None = None,
        data: bool = False,
        consumers: Mapping[str, Any] | None = None,
        purgatory: bool = False,
        start: bool = True,
        otherwise: str | None = None,
        runs: str | Path | None = "runs",
    ) -> None:
        """Open the cluster.

        brokers    their number, or their ids in the order of their start
        release    of Kafka, such as "0.8.1" or "2.8"
        seed       seed of every random choice
        world      "simulated" or "zookeeper", a real ZooKeeper that the lab starts
        zookeeper  the real ZooKeeper at host:port[/chroot]
        otherwise  the world to open if the chosen world is not available
        rows       actions of transition tables to replace, in this lab only:
                   {"partition.(OfflinePartition, OnlinePartition)": mine}, or
                   {(PartitionState.OFFLINE, PartitionState.ONLINE): mine}
        strategies elections, rules of groups, and the assignor of the consumers,
                   to replace, in this lab only: {"offline": mine},
                   {"group.try_complete_join": mine}, {"assignor": mine}
        rules      values of rules, in this lab only: {"fenced_writes": False}
        config     settings of the brokers under Kafka's names
        topics     topics to create at the start: {"t": [[1, 2, 3]]}
        data       whether the brokers keep logs, so that produce works
        consumers  names of consumers with their groups, or with settings: {"a":
                   {"group.id": "g", "session.timeout.ms": 6000}}
        purgatory  whether the journal has the steps of delayed operations
        start      whether the lab starts the brokers
        runs       the folder that keeps the journal, None for no folder

        Raises UserError for illegal arguments.
        """
        changed = requested_settings.Changed(rows, strategies, rules)
        assigned = arguments.mapping(topics, "Topics", '{"t": [[1, 2, 3]]}')
        runs = None if runs is None else arguments.path(runs, "runs")
        data, purgatory = arguments.flag(data, "data"), arguments.flag(purgatory, "purgatory")
        config = {} if config is None else config
        settings = requested_settings.settings(brokers, release, seed, config, changed, data, consumers, purgatory, assigned)
        opened = open_world.open_world(settings, "zookeeper" if zookeeper else world, zookeeper, otherwise)
        self._take(opened.world, opened.world.kind, opened.closing, runs)
        self._address = opened.address
        try:
            for broker in settings.brokers if arguments.flag(start, "start") else ():
                self.start(broker).run()
            for topic, assignment in assigned.items():
                self.create_topic(topic, assignment).run()
        except BaseException:
            self.close()
            raise

    _address: str | None = None

    def _take(self, world: World, name: str, closing: ExitStack, runs: str | Path | None) -> None:
        super().__init__(world.journal, name)
        self._world, self._closing, self._runs = world, closing, runs
        self._file = RunFile(runs, name if name == world.kind else f"{world.kind}-{name}")
        self._family: dict[str, Lab] = {branches.MAIN: self}
        self._question: predictions.PredictionQuestion | None = None
        self._shown: Viewer | None = None
        self._beside: Viewer | None = None
        self._kept = len(world.journal)
        _open.add(self)
        self._keep()

    # ---------------------------------------------------------------- actions

    @property
    def records(self) -> list[Record]:
        """The journal's own list of records, in the order in which they were made; the lab appends later records to it."""
        return self._world.journal.records

    def actions(self) -> list[PossibleAction]:
        """Return the actions that are possible now: first routine actions, in the order in which `run` takes them, then faults.

        The cluster performs routine actions, such as a delivery, by itself. A kill is a fault.
        """
        self._require_open()
        with failures.zookeeper_answers():
            return self._world.actions()

    def step(self, action: Sequence[Any] | None = None) -> Self:
        """Perform one action, such as ("kill", 1); without an argument, perform the next action that `run` would take.

        Raises UserError, which lists the possible actions, for an action that is not possible.
        """
        self._require_open()
        chosen = action if action is not None else self._next()
        if chosen is None:
            raise UserError("The cluster is quiet: no routine action is left; start or kill a broker, or change something.")
        if isinstance(chosen, str) or not isinstance(chosen, Sequence):
            raise UserError(f'{chosen!r} is not an action: use an action of lab.actions(), such as ("kill", 1).')
        return self._act(*chosen)

    def run(self, until: str | Callable[[Self], object] = run_until.QUIET, *, alive: bool = False) -> Self:
        """Perform the actions that the cluster does by itself, until none is left, or until the condition `until` is true.

        until  "quiet", "a controller is elected", a sentence such as "t-0 has a leader", an event that a broker
               begins to handle, such as "BrokerChange", or a function of the lab
        alive  whether consumers join, send heartbeats and poll by themselves in virtual time, and deadlines fire;
               `until` can be a duration then, such as "12 s", and "quiet" means that only heartbeats are left; the
               controller's check of preferred leaders fires by lab.fire_timer alone

        Raises UserError if no action is left before the condition is true, and if a group does not come to rest.
        """
        self._require_open()
        ends_ms = run_until.end_ms(self._world, until, arguments.flag(alive, "alive"))
        reached = run_until.goal(until if ends_ms is None else run_until.QUIET)
        step, failed = list[Record](), failures.FailureCheck(self._world, has_end=not alive or ends_ms is not None)
        try:
            while not reached(self, step):
                following = self._next(failed.repeating)
                if following is None and alive:
                    following = consumer_life.next_action(self._world, ends_ms)
                if following is None:
                    return self._at_rest(until if ends_ms is None else run_until.QUIET)
                self._step(following)
                step = self._world.last_step
                failed.check(step)
        finally:
            self._keep()
        return self

    def _at_rest(self, until: object) -> Self:
        if until == run_until.QUIET:
            return self
        what = until if isinstance(until, str) else "the function that was passed is true"
        raise UserError(f"The cluster is quiet before this condition is true: {what}.")

    def run_event(self, broker: int) -> Self:
        """Complete the handler that a broker's controller thread has begun; if none has begun, run the handler of the next event.

        Raises UserError if there is neither a handler nor an event.
        """
        found = self._world.processes.get(broker)
        if found is None or found.driver.threads["controller"].handler is None:
            self._act("begin", broker, "controller")
        thread = self._world.processes[broker].driver.threads["controller"]
        while thread.handler is not None:
            self._step(("advance", broker, "controller"))
        return self._keep()

    # ---------------------------------------------------------------- namespaces

    @property
    def tables(self) -> LabTables:
        """The tables of this run; `lab.tables` in a cell lists them."""
        return LabTables(self)

    @property
    def zk(self) -> Zk[Self]:
        """The namespace of commands on znodes: `get`, `set`, `create` and `delete`, as in ZooKeeper's own shell."""
        return Zk(self)

    @property
    def network(self) -> Network[Self]:
        """The namespace of commands that break a controller's connections, or end a follower's fetch from a frozen leader."""
        return Network(self)

    @property
    def disks(self) -> Disks[Self]:
        """The namespace of commands that damage the brokers' disks, on which the logs of partitions are."""
        return Disks(self)

    @property
    def group(self) -> Group[Self]:
        """The namespace of commands on consumers and groups: requests to coordinators, and faults of consumers' processes."""
        return Group(self)

    def _act(self, *action: Any) -> Self:
        self._require_open()
        arguments.storable(action)
        try:
            self._step(tuple(map(_plain_number, action)))
        finally:
            self._keep()
        return self

    def _next(self, repeating: int | None = None) -> Action | None:
        with failures.zookeeper_answers():
            return failures.next_action(actions.routine_actions(self._world), repeating)

    def _step(self, action: Action) -> None:
        with failures.zookeeper_answers():
            self._world.step(action)

    def _require_open(self) -> None:
        if self not in _open:
            raise UserError("This lab is closed: its tables and pictures can still be read; open another lab to do more.")

    def _keep(self) -> Self:
        """Append new records to the journal's file, show them in the viewers of this lab and its branches, and return this lab.

        The failures of handlers and the refusals of requests among the new records are printed.
        """
        self._file.flush(self.records)
        for record in self.records[self._kept :]:
            if record.kind == "handler_error" and record.fields["error"] != replacements.RuleFailed.__name__:
                say(f"{record.id}  {text.sentence(record)}")
            for refusal in (*reassignments.refusals(record), *responses.refusals(record)):
                say(f"{record.id}  {refusal}")
        self._kept = len(self.records)
        for lab in self._family.values():
            if lab._beside is not None:
                lab._beside.show_new_records(self)
        return self

    def _read_znode(self, path: str) -> Znode:
        with failures.zookeeper_answers():
            (znode,) = self._world.tool.read([path], False)
        assert znode is not None, "znodes are deleted by steps alone"
        return znode

    # ---------------------------------------------------------------- branches

    @classmethod
    def _of(cls, world: World, name: str, runs: str | Path | None = None) -> Self:
        lab = object.__new__(cls)
        lab._take(world, name, ExitStack(), runs)
        return lab

    @property
    def branches(self) -> Mapping[str, Lab]:
        """The first run ("main") and all its named branches, by name, also if this lab is one of these branches.

        Each value is a lab; a branch has a copy of the run.
        """
        return self._family.copy()

    def branch(self, name: str | None = None, at: object = None) -> Lab:
        """Return another lab with a copy of this run, which goes on in the simulated world.

        name  the name in `branches`, in the viewer and for `compare`; a branch without a name is in none of them
        at    the record at which the copy ends: an id such as "2.1.58" or a position in the journal; by default the last

        Raises UserError for a name that a branch has already, and for an unknown record.
        """
        free = None if name is None else branches.free_name(name, self._family)
        if self._world.kind == "simulated" and at is None:
            world = self._world.fork()
        else:
            world = self._play_again(len(self.records) - 1 if at is None else record_lookup.position(self.records, at))
        if self._world.kind != "simulated":
            say("The branch goes on in the simulated world, with the same steps so far.")
        branch = self._of(world, free or branches.UNNAMED, self._runs)
        return branch if free is None else self._adopt(branch)

    def without(self, record: object) -> divergence.Divergence:
        """Play the run on a branch without the user's action that caused `record`; return the comparison of both runs.

        `record` is an id such as "2.1.58", or "leader of t-0" for its last change. Raises UserError if no action such as a kill
        caused it.
        """
        found = record_lookup.record(self.records, record)
        root = why(self.records, found.id)[-1]
        # The branch gets all other actions from outside that are possible in it. A fact stands for its last change.
        played = branches.play_without(self._world, record_lookup.position(self.records, root.id))
        name = branches.numbered(f"without: {text.action_label(played.action)}", self._family)
        branch = self._of(played.world, name, self._runs)
        if played.impossible:
            say(f"Not possible without it, and left out too: {text.listed(map(text.action_label, played.impossible), 9)}.")
        own = next(name for name, lab in self._family.items() if lab is self)
        return divergence.divergence((own, self._adopt(branch).name), self.records, branch.records)

    def _adopt(self, branch: Lab) -> Lab:
        branch._family = self._family
        self._family[branch.name] = branch
        for lab in self._family.values():
            if lab._beside is not None:
                lab._beside.refresh_branches()
        return branch

    def _named(self, run: object) -> tuple[str, Run]:
        return (run, self._family[arguments.one_of(run, self._family, "branch")]) if isinstance(run, str) else super()._named(run)

    @property
    def _changed_settings(self) -> dict[str, str]:
        return requested_settings.changed(self._world.settings)

    def _play_again(self, at: int) -> World:
        """Return a simulated world after the steps of this run, up to the step that made the journal record at position `at`."""
        world = World(self._world.settings)
        for _ in self._played_again(world):
            if len(world.journal) > at:
                break
        return world

    def _played_again(self, world: World) -> Iterator[World]:
        """Play the steps of this run in `world`, a world at its start; yield `world` before the first step and after each step.

        Raises UserError if a step is not possible there.
        """
        yield world
        for action in self._world.done:
            branches.play(world, action)
            yield world

    open = staticmethod(open_journal)
    open_logs = staticmethod(opened_logs.open_logs)

    @staticmethod
    def observe(where: str | Lab) -> Observed:
        """Open a cluster to be read only: `where` is the address of a real ZooKeeper, `host:port[/chroot]`, or a lab.

        Nothing is written to ZooKeeper. Raises UserError if there is no cluster.
        """
        from kcontrol.lab import observed_cluster
        from kcontrol.zookeeper.kazoo.observe import Observer

        if isinstance(where, Lab) and where._address is None:
            return observed_cluster.Observed(Observer(where._world.tool), where.name, lambda: where.records[-1].at_ms)
        return observed_cluster.observe(str(where._address if isinstance(where, Lab) else where))

    @classmethod
    def play(
        cls,
        scenario: Run | Mapping[str, Any] | str | Path,
        release: str | None = None,
        seed: int = 7,
        *,
        rows: Mapping[Any, Callable[..., Any]] | None = None,
        strategies: Mapping[str, Callable[..., Any]] | None = None,
        rules: Mapping[str, Any] | None = None,
        until: str | None = None,
        runs: str | Path | None = "runs",
    ) -> Self:
        """Return a lab in whose simulated world a scenario was played: that of a recording, or of a chapter's run.

        scenario  a Run, a file, a name in Lab.recordings(), a dict in a recording's format, or the name of a
                  chapter's run, such as "billing"
        release   by default that of the recording
        until     the last step to play of a chapter's run, such as "dora joins"

        The other arguments are those of Lab(...). Raises UserError for a value that is not a scenario,
        and for a step that is impossible or unknown.
        """
        if found := plays.find(scenario, until):
            chosen_release, given = release or found.release, found.arguments
            begun = cls(release=chosen_release, seed=seed, rows=rows, strategies=strategies, rules=rules, runs=runs, **given)
            return plays.perform(begun, found, until)
        played, name = recording_diff.scenario_of(open_journal(scenario) if isinstance(scenario, str | Path) else scenario)
        chosen = requested_settings.played(played, release, seed, requested_settings.Changed(rows, strategies, rules))
        # The winners of controller elections are the recorded ones. The keys of a recording, such as `brokers` and `steps`, are
        # those of `kcontrol/recordings/recording.py`.
        play_it = group_player.GroupPlayer if "exchange" in played else player.Player
        return cls._of(play_it(dict(played), chosen).play(), name, runs)

    # ---------------------------------------------------------------- pictures

    def _table(self, machine: str) -> TransitionTable:
        """Return the transition table "partition", "replica" or "group" of this lab; a learner's functions replace Kafka's."""
        settings = self._world.settings
        return replacements.table(machine, settings.release, settings.changes)

    @property
    def viewer(self) -> Viewer:
        """A viewer for the side of the notebook, which shows each new journal record.

        The viewers in older cells do not change.
        """
        if self._beside is None:
            self._beside = self._new_viewer()
        return self._beside

    def _allows_unclean(self) -> bool:
        """Return unclean.leader.election.enable of this lab's brokers: the lab's own setting, else the release's default."""
        said = self._world.settings.config.unclean_leader_election_enable
        return super()._allows_unclean() if said is None else said

    def _new_viewer(self) -> Viewer:
        from kcontrol.views.viewer import Viewer

        viewer = Viewer(self, title="" if self.name == self._world.kind else self.name)
        viewer.held = self._held or ""
        return viewer

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if self._shown is not None:
            self._shown.live = False  # only the latest picture has buttons
        self._shown = self._new_viewer()
        return self._shown._repr_mimebundle_(**kwargs)

    def _release(self) -> None:
        """Disable the Step buttons of this lab's viewers while a question waits for an answer; else enable them."""
        for viewer in filter(None, (self._shown, self._beside)):
            viewer.held = self._held or ""

    # ---------------------------------------------------------------- questions

    def _ask(self, id: str) -> predictions.PredictionQuestion:
        """Put the question `id` about this lab to the learner, and return the question.

        The viewer's Step button waits for the answer.
        """
        self._question = predictions.ask(id, self, self._release)
        self._release()
        return self._question

    @property
    def _held(self) -> str | None:
        """The sentence "Answer first: ..." if the viewer's Step button waits for the answer to a question, else None.

        `step` and `run` do not wait.
        """
        return self._question.waiting if self._question else None

    # ---------------------------------------------------------------- Spark, and the end

    recordings, sweep = staticmethod(catalogue.recordings), staticmethod(sweeps.sweep)

    @classmethod
    def runs(cls, folder: str | Path | None = None) -> Runs:
        """Return the runs in a folder, by default the folder in which labs keep their runs.

        The result has a picture and Spark tables of the runs; both raise UserError if there is no run.
        """
        # If the folder of kept runs has fewer than twelve, twelve runs that come with kcontrol stand beside them. A given
        # folder is shown alone.
        return Runs(folder, cls)

    def spark(self, *, optional: bool = False, master: str = LOCAL) -> SparkSession | Any:
        """Return a Spark session with a view of this run for each table of the whole run, such as `journal`.

        optional  if Spark or Java is missing, whether to print a sentence and return a substitute
        master    the address of Spark, such as spark://HOST:PORT, whose workers read the file of the run

        Raises UserError if Spark or Java is missing and `optional` is False.
        """
        from kcontrol.lab import spark_session

        return spark_session.session(self._keep(), optional=optional, master=master)

    def close(self) -> None:
        """End the sessions and servers that this lab has started.

        Spark ends with the last lab that uses it. A second call does nothing.
        """
        self._keep()
        self._closing.close()
        _open.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Kafka {self._world.settings.release}, {self._world.kind} world: {self.summary()}"


def _plain_number(word: Any) -> Any:
    """Return a number of NumPy, which tables contain, as a number of Python; any other value unchanged."""
    return index(word) if isinstance(word, SupportsIndex) and not isinstance(word, bool) else word


show_sentences()


@atexit.register
def _close_all() -> None:
    for lab in list(_open):
        lab.close()
