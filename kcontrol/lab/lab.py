"""The notebook's front door: a cluster to open, run, break, rewind and branch."""

from __future__ import annotations

import atexit
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from operator import index
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

from kcontrol.errors import UserError
from kcontrol.lab import (
    arguments,
    beside,
    branching,
    choosing,
    exercises,
    expecting,
    goals,
    moving,
    parting,
    predicting,
    promises,
    replacing,
    stage,
    subjects,
    tables,
    troubles,
)
from kcontrol.lab.acting import Acts
from kcontrol.lab.creating import Assignment
from kcontrol.lab.listing import Lists
from kcontrol.lab.moment import Moment, open_journal
from kcontrol.lab.runs import RunFile
from kcontrol.lab.saying import Shown, say, show_sentences
from kcontrol.lab.verdicts import Verdict
from kcontrol.runtime import journal
from kcontrol.runtime.journal import Record
from kcontrol.sim import acts
from kcontrol.sim.player import Player
from kcontrol.sim.world import Action, World
from kcontrol.views import text, zkcli

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession

    from kcontrol.lab.observing import Observed
    from kcontrol.transitions import TransitionTable
    from kcontrol.views.viewer import Viewer


_open: weakref.WeakSet[Lab] = weakref.WeakSet()


class Lab(Acts, Lists):
    """A cluster of brokers with its controller, and its journal.

    `brokers` is how many there are, or their ids; they start in this order, one after the other has come to rest, unless `start`
    is False. `world` is "simulated" or "zookeeper", a real one of our own or the one that `zookeeper` names as
    host:port[/chroot]; if it cannot be had, the lab says why and takes the world named by `otherwise`. `replace` swaps functions
    of the controller for this lab alone, `config` holds settings of brokers under Kafka's names, `topics` are created at the
    start. With `data` the brokers keep logs, and there is `produce`. `consumers` are names with their groups, whose
    coordinators are the brokers that lead partitions of the topic `__consumer_offsets`. The journal is kept in the folder
    `runs`, None for nowhere. Raises UserError for whatever of this cannot be.
    """

    def __init__(
        self,
        brokers: int | Sequence[int] = 3,
        release: str = "2.8",
        seed: int = 7,
        world: str = "simulated",
        zookeeper: str | None = None,
        replace: Mapping[str, Callable[..., Any]] | None = None,
        *,
        config: Mapping[str, Any] | None = None,
        topics: Mapping[str, Assignment] | None = None,
        data: bool = False,
        consumers: Mapping[str, str] | None = None,
        start: bool = True,
        otherwise: str | None = None,
        runs: str | Path | None = "runs",
    ) -> None:
        replaced = replacing.checked(arguments.mapping(replace, "Replaced functions", '{"election.offline": mine}'))
        assigned = arguments.mapping(topics, "Topics", '{"t": [[1, 2, 3]]}')
        runs = None if runs is None else arguments.path(runs, "runs")
        settings = choosing.settings(brokers, release, seed, {} if config is None else config, replaced, bool(data), consumers)
        opened = stage.open_stage(settings, "zookeeper" if zookeeper else world, zookeeper, otherwise)
        self._take(opened.world, opened.world.kind, opened.closing, runs)
        self.zookeeper = opened.address
        try:
            for broker in settings.brokers if start else ():
                self.start(broker).run()
            for topic, assignment in assigned.items():
                self.create_topic(topic, assignment).run()
        except BaseException:
            self.close()
            raise

    zookeeper: str | None = None
    """Where the real ZooKeeper is, as host:port/chroot; None in the simulated world."""

    def _take(self, world: World, name: str, closing: ExitStack, runs: str | Path | None) -> None:
        super().__init__(world.journal, name)
        self._world, self.closing, self._runs = world, closing, runs
        self._file = RunFile(runs, name if name == world.kind else f"{world.kind}-{name}")
        self._family: dict[str, Lab] = {branching.MAIN: self}
        self._question: predicting.Question | None = None
        self._shown: Viewer | None = None
        self._beside: Viewer | None = None
        self._kept = len(world.journal)
        _open.add(self)
        self._keep()

    # ---------------------------------------------------------------- what can happen, and letting it

    @property
    def records(self) -> list[Record]:
        """The journal, in the order in which its records were made."""
        return self._world.journal.records

    @property
    def world(self) -> str:
        """Which kind of world this is, one of `stage.WORLDS`."""
        return self._world.kind

    def actions(self) -> list[Action]:
        """What can happen next: first what goes on by itself, in the order in which `run` takes it, then the faults on offer."""
        self._require_open()
        with troubles.zookeeper_answers():
            return self._world.actions()

    def step(self, action: Sequence[Any] | None = None) -> Self:
        """Do one action, or the next one that goes on by itself.

        Raises UserError, listing what there is, for one that cannot happen.
        """
        self._require_open()
        chosen = action if action is not None else self._next()
        if chosen is None:
            raise UserError("The cluster is quiet: nothing goes on by itself; start, kill or change something.")
        if isinstance(chosen, str) or not isinstance(chosen, Sequence):
            raise UserError(f'{chosen!r} is no action: it should be one of lab.actions(), such as ("kill", 1).')
        return self._act(*chosen)

    def run(self, until: str | Callable[[Self], object] = goals.QUIET) -> Self:
        """Go on, without faults, until nothing is left to do, or until something else is so.

        `until` is "quiet", "a controller is elected", a sentence such as "t-0 has a leader" (`goals.SENTENCES` has them all), the
        event that a broker begins with, such as "BrokerChange", or a function of the lab. Raises UserError if the cluster comes
        to rest before that.
        """
        self._require_open()
        reached, step, seen = goals.goal(until), list[Record](), Counter[str]()
        try:
            while not reached(self, step):
                following = self._next()
                if following is None:
                    return self._at_rest(until)
                self._step(following)
                step = self._world.last_step
                troubles.watch(step, seen)
        finally:
            self._keep()
        return self

    def _at_rest(self, until: object) -> Self:
        if until == goals.QUIET:
            return self
        what = until if isinstance(until, str) else "what was waited for"
        raise UserError(f"The cluster has come to rest, and it has not come to this: {what}.")

    def run_event(self, broker: int) -> Self:
        """Let a broker's controller thread take its next event, or go on with the one it has, to the end of its handler."""
        thread = self._world.processes[self._alive(broker)].driver.threads["controller"]
        if thread.handler is None:
            self._act("begin", broker, "controller")
        while thread.handler is not None:
            self._step(("advance", broker, "controller"))
        return self._keep()

    def _act(self, *action: Any) -> Self:
        self._require_open()
        arguments.storable(action)
        try:
            self._step(tuple(map(_plain_number, action)))
        finally:
            self._keep()
        return self

    def _next(self) -> Action | None:
        with troubles.zookeeper_answers():
            return next(acts.routine(self._world), None)

    def _step(self, action: Action) -> None:
        with troubles.zookeeper_answers():
            self._world.step(action)

    def _require_open(self) -> None:
        if self not in _open:
            raise UserError("This lab is closed: what it has done can still be looked at; open another one to go on.")

    def _keep(self) -> Self:
        """Bring the journal's file up to date, and say what has failed since the last time."""
        self._file.flush(self.records)
        for record in self.records[self._kept :]:
            if record.kind == "fail" and record.fields["error"] != replacing.RuleFailed.__name__:
                say(f"{record.id}  {text.say(record)}")
            for refusal in moving.refusals(record):
                say(f"{record.id}  {refusal}")
        self._kept = len(self.records)
        for lab in self._family.values():
            if lab._beside is not None:
                lab._beside.look_at(self)
        return self

    def config(self) -> pd.DataFrame:
        """One row per setting of Kafka's: what these brokers work by, the defaults of all releases, and what it does here."""
        settings = self._world.settings
        return tables.config(settings.release, asdict(settings.config))

    def get(self, path: str) -> Shown:
        """A znode with the eleven lines of its Stat, as `get -s` of ZooKeeper's own shell prints it."""
        with troubles.zookeeper_answers():
            (znode,) = self._world.tool.read([self._there(path)], False)
        assert znode is not None, "nobody deletes a znode between two steps"
        return Shown(zkcli.format_stat(znode.data, znode.stat))

    # ---------------------------------------------------------------- branches

    def fork(self, name: str = "branch", at: object = None) -> Lab:
        """A branch: another lab with the same past, up to now or up to the step of the record `at`.

        It goes on in the simulated world. Raises UserError for a record that is not there.
        """
        arguments.words(name, "A branch's name", "what if")
        if self.world == "simulated" and at is None:
            world = self._world.fork()
        else:
            world = self._play_again(len(self.records) - 1 if at is None else subjects.position(self.records, at))
        if self.world != "simulated":
            say("The branch goes on in the simulated world, with the same steps so far.")
        return self._spawn(world, name)

    def _spawn(self, world: World, name: str) -> Lab:
        twin = object.__new__(type(self))
        twin._take(world, name, ExitStack(), self._runs)
        return twin

    @property
    def branches(self) -> Mapping[str, Lab]:
        """This run and all that was branched off by name, by those names; the run from which all come is called `main`."""
        return self._family.copy()

    def branch(self, name: str, at: object = None) -> Lab:
        """A fork that goes by a name: in the viewer's switcher, and for `compare`.

        Raises UserError for a name that is taken, and for a record that is not there.
        """
        return self._adopt(self.fork(branching.free_name(name, self._family), at))

    def without(self, record: object) -> parting.Parting:
        """The run played again on a branch without the act or fault that this record goes back to, compared with this one.

        Whatever else was done to the cluster is done there too, as far as it is possible. Raises UserError where nobody
        outside has caused the record.
        """
        found = subjects.record(self.records, record)
        root = journal.why(self.records, found.id)[-1]
        played = branching.play_without(self._world, subjects.position(self.records, root.id))
        branch = self._spawn(played.world, branching.numbered(f"without: {text.label(played.action)}", self._family))
        if played.impossible:
            say(f"Without it this could not happen: {text.listed(map(text.label, played.impossible), 9)}.")
        own = next(name for name, lab in self._family.items() if lab is self)
        return parting.parting((own, self._adopt(branch).name), self.records, branch.records)

    def _adopt(self, branch: Lab) -> Lab:
        branch._family = self._family
        self._family[branch.name] = branch
        for lab in self._family.values():
            if lab._beside is not None:
                lab._beside.look_around()
        return branch

    def _named(self, run: object) -> tuple[str, Moment]:
        if isinstance(run, str) and run not in self._family:
            raise UserError(f"There is no branch {run!r}; the branches are {text.listed(self._family, 30)}.")
        return (run, self._family[run]) if isinstance(run, str) else super()._named(run)

    @property
    def changed_settings(self) -> dict[str, str]:
        return choosing.changed(self._world.settings)

    def _play_again(self, at: int) -> World:
        """The same steps in the simulated world, up to the one that made record number `at`."""
        world = World(self._world.settings)
        for _ in self._played_again(world):
            if len(world.journal) > at:
                break
        return world

    def _played_again(self, world: World) -> Iterator[World]:
        """This world before the first step of this run and after each of them."""
        yield world
        for action in self._world.done:
            try:
                world.step(action)
            except UserError as problem:
                raise UserError(
                    f"This run cannot be played again, since something happened in it from outside: {problem}"
                ) from None
            yield world

    @staticmethod
    def open(path: str | Path) -> Moment:
        """A run that was kept in a file, or a recording of real brokers, to look at; `Lab.recordings()` lists the recordings.

        Raises UserError where it is neither.
        """
        return open_journal(path)

    @staticmethod
    def observe(where: str | Lab) -> Observed:
        """Somebody's cluster, to look at and never to touch: `host:port[/chroot]`, or another lab.

        Nothing is written there and no watch is left. Raises UserError where there is nothing to look at.
        """
        from kcontrol.lab import observing
        from kcontrol.runtime.zk_observe import Observer

        if isinstance(where, Lab) and where.zookeeper is None:
            return observing.Observed(Observer(where._world.tool), where.name, lambda: where.records[-1].at_ms)
        return observing.observe(str(where.zookeeper if isinstance(where, Lab) else where))

    @classmethod
    def play(
        cls,
        scenario: Moment | Mapping[str, Any] | str | Path,
        release: str | None = None,
        seed: int = 7,
        replace: Mapping[str, Callable[..., Any]] | None = None,
        *,
        runs: str | Path | None = "runs",
    ) -> Self:
        """A lab in whose simulated world a scenario has been played: that of a recording, or a dict with brokers and steps.

        The release is that of the recording unless another is named; who wins an election is taken from the recording. Raises
        UserError for what is no scenario, for a step that cannot be done, and for a release that is not played.
        """
        played, name = beside.scenario_of(open_journal(scenario) if isinstance(scenario, str | Path) else scenario)
        chosen = choosing.played(played, release, seed, replacing.checked(replace or {}))
        lab = object.__new__(cls)
        lab._take(Player(played, chosen).play(), name, ExitStack(), runs)
        return lab

    # ---------------------------------------------------------------- pictures

    def _table(self, machine: str) -> TransitionTable:
        """The table that this lab's brokers work by, a learner's own rows included."""
        found = super()._table(machine)
        for row in found:
            mine = self._world.settings.replace.get(f"{machine}.({row.source}, {row.target})")
            found = found.replaced(row.source, row.target, mine) if mine else found
        return found

    @property
    def viewer(self) -> Viewer:
        """A viewer that follows whatever happens, to be put beside the notebook; those that cells show stay as they were."""
        if self._beside is None:
            self._beside = self._new_viewer()
        return self._beside

    def _allows_unclean(self) -> bool:
        """What this lab's brokers are configured to."""
        said = self._world.settings.config.unclean_leader_election_enable
        return super()._allows_unclean() if said is None else said

    def _new_viewer(self) -> Viewer:
        from kcontrol.views.viewer import Viewer

        viewer = Viewer(self, title="" if self.name == self.world else self.name)
        viewer.held = self.held or ""
        return viewer

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if self._shown is not None:
            self._shown.live = False  # the buttons are under the latest picture alone
        self._shown = self._new_viewer()
        return self._shown._repr_mimebundle_(**kwargs)

    def _release(self) -> None:
        """A question has been answered: the viewers' buttons need not wait for it any more."""
        for viewer in filter(None, (self._shown, self._beside)):
            viewer.held = self.held or ""

    # ---------------------------------------------------------------- what Kafka promises

    @property
    def invariants(self) -> pd.DataFrame:
        """What Kafka promises: one row per invariant, by name, with the release since which it is promised."""
        return promises.table(self._world.settings.release)

    def check_invariants(self, *own: promises.Own) -> pd.DataFrame:
        """Play this run again and look at every invariant after each step: one row each, with the first step that broke it.

        `own` are further ones: functions of the world that return None, or what is wrong in a sentence, and whose docstring says
        what holds. If something is broken, `attrs["scenario"]` of the table is the run as Python that can be pasted. Raises
        UserError for a run in which something happened from outside, and for a function that has no docstring or fails.
        """
        world = World(self._world.settings)
        return promises.kept(self._world, lambda: self._played_again(world), own)

    # ---------------------------------------------------------------- questions and exercises

    @property
    def held(self) -> str | None:
        """Why the viewer's step button waits: a question that is open. None if it does not; Python's steps never wait."""
        return self._question.waiting if self._question else None

    def predict(self, id: str) -> predicting.Question:
        """Ask a question before the run that shows its outcome. Raises UserError, listing the ids, for an unknown one."""
        self._question = predicting.ask(id, self, self._release)
        self._release()
        return self._question

    @staticmethod
    def outcome(id: str) -> None:
        """Show the outcome of a question, right or wrong, in the output of the cell that has run what the question is about.

        Raises UserError, listing the ids, for one that does not exist.
        """
        predicting.tell(id)

    def expect(self, label: str, want: object, got: object) -> None:
        """Pin a fact: print it if it is as it should be, and otherwise raise AssertionError that says so in one sentence."""
        expecting.expect(label, want, got)

    def check(self, id: str, answer: object) -> Verdict:
        """Try an answer to an exercise in real scenarios, in a process of its own."""
        return exercises.check(id, answer)

    @staticmethod
    def incident(id: str) -> Moment:
        """The run that an exercise asks about, to look into. Raises UserError for an exercise that is unknown, or has no run."""
        return exercises.incident(id)

    def hint(self, id: str) -> Shown:
        """The next hint to an exercise, one at a time."""
        return exercises.hint(id)

    # ---------------------------------------------------------------- Spark, and the end

    @property
    def path(self) -> Path | None:
        """The file that keeps this run's journal; None where there is none."""
        return self._file.path

    def spark(self, *, optional: bool = False) -> SparkSession | Any:
        """A Spark session with this run in the views `journal` and `leaderships`.

        Raises UserError where Spark or Java is missing; if that is `optional`, says so instead, and what is returned in place of
        the session answers everything with that sentence.
        """
        from kcontrol.lab import asking

        return asking.session(self._keep(), optional=optional)

    def close(self) -> None:
        """End what this lab has started: sessions, ZooKeeper, Spark. A second call does nothing."""
        self._keep()
        self.closing.close()
        _open.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Kafka {self._world.settings.release}, {self.world} world: {self.summary()}"


def _plain_number(word: Any) -> Any:
    """A number out of a table, which is NumPy's, as Python's."""
    return index(word) if isinstance(word, SupportsIndex) and not isinstance(word, bool) else word


show_sentences()


@atexit.register
def _close_all() -> None:
    for lab in list(_open):
        lab.close()
