"""Searches all orders of a cluster's actions for a shortest run that breaks a promise, and shows this run.

A promise is a condition on the cluster's states, such as "t-0 always has a leader".
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kcontrol.cluster.consumer_clients import REQUESTED
from kcontrol.cluster.run_settings import FAULTS
from kcontrol.cluster.world import World
from kcontrol.core.errors import UserError
from kcontrol.core.znodes import CONTROLLER, parse_state_path
from kcontrol.journal.journal import Record
from kcontrol.lab.searches import spark_search
from kcontrol.lab.support import arguments
from kcontrol.search import memo_world, promises
from kcontrol.search.promises import Promise
from kcontrol.search.search import FOUND, SECONDS, STATES, STEPS, Budget, SearchResult, search_within
from kcontrol.views import text
from kcontrol.views.picture import Picture
from kcontrol.views.search_strip import OUTSIDE, SearchStrip, StripStep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kcontrol.lab.lab import Lab

USUAL = Budget(steps=14, faults=1, states=100_000, seconds=60)
KINDS = (*FAULTS, "create_topic", *REQUESTED)
BROKERS_OWN = ("advance", "begin", "deliver_notification", "renew", "reconnect", "fire_timer", "exit", "send_to_controller",
               "checkpoint", "send_delayed_response")  # fmt: skip
"""The kinds of actions whose first argument is the broker that acts."""


class SearchOutcome:
    """What a search has found, how far it looked, and with which engine.

    outcome.states     how many different states the search has reached
    outcome.ended_by   what ended it: a violation, a bound of the budget, or that no state is left
    outcome.budget     the bounds: steps and faults of a run, states, seconds
    outcome.engine     text: "quick engine", which reuses the outcome of a handler for equal states,
                       or "plain engine", which runs every handler, with the reason for it
    outcome.left_out   text: the runs that the search has not looked at, such as longer runs
    outcome.seconds    how long it took
    """

    def __init__(self, result: SearchResult, promise: Promise, budget: Budget, world: World, place: str, seconds: float) -> None:
        self.states, self.ended_by, self.budget, self.seconds = result.states, result.ended_by, budget, seconds
        self._depth = result.depth
        self.promise, self._faults = str(promise), world.settings.faults
        why = memo_world.why_plain(world)
        self.engine = f"plain engine{place}, because {why}" if why else f"quick engine{place}"
        self._is_instant, self._has_followers = world.settings.instant_requests, world.settings.followers
        self._has_silent_consumers = bool(world.settings.consumers) and not {*REQUESTED} & {*self._faults}

    @property
    def left_out(self) -> str:
        """The text about the runs that were not searched, such as "runs of more than 14 steps; larger clusters"."""
        others = ", ".join(kind for kind in FAULTS if kind not in self._faults)
        said = [f"runs with more than {self._most_faults}" + (f", and faults of other kinds ({others})" if others else "")]
        if self.ended_by == FOUND:
            said = ["longer runs, other runs that are not shorter, and runs with more faults or faults of other kinds"]
        elif self.ended_by == STEPS:
            said = [f"runs of more than {text.counted(self.budget.steps, 'step')}", *said]
        elif self.ended_by in (STATES, SECONDS):
            longer, some = text.counted(self._depth, "step"), text.counted(self._depth + 1, "step")
            said = [f"runs of more than {longer}, except some of {some}", *said]
        said += ["requests of consumers"] if self._has_silent_consumers else []
        said += ["requests that arrive late"] if self._is_instant else []
        said += ["followers that fetch"] if not self._has_followers else []
        return "; ".join(said if self.ended_by == FOUND else [*said, "larger clusters"])

    @property
    def _most_faults(self) -> str:
        return text.counted(self.budget.faults, "fault")


class Found(SearchOutcome, Picture):
    """A shortest run that breaks the promise or invariant that `lab.search` was asked for.

    found.violation   the sentence of the violation
    found.actions     the actions of the run, from the state in which the search began
    found.open(step)  a new lab in which the first `step` actions were performed
    found.open()      a new lab in which all actions were performed
    The attributes of SearchOutcome, such as states and ended_by, are there too.
    """

    def __init__(self, outcome: tuple[Any, ...], result: SearchResult, begin: Callable[[], Lab]) -> None:
        super().__init__(result, *outcome)
        assert result.violation is not None
        self.violation, self.actions, self._begin = result.violation, list(result.actions), begin
        self.strip = SearchStrip(list(_steps(result)), self.violation)

    def open(self, step: int | None = None) -> Lab:
        """Return a new lab with the run up to and including action number `step`; 0 is the state before the first action.

        None is the whole run. Raises UserError for a number without an action.
        """
        last = len(self.actions)
        arguments.whole(last if step is None else step, "The step")
        chosen = last if step is None else step
        if not 0 <= chosen <= last:
            raise UserError(f"The run has {last} steps: choose a step from 0 to {last}, not {chosen}.")
        lab = self._begin()
        for action in self.actions[:chosen]:
            lab.step(action)
        return lab

    def __repr__(self) -> str:
        steps = f"{text.counted(len(self.actions), 'step')} {'breaks' if len(self.actions) == 1 else 'break'}"
        headline = f"Found: {steps} the promise: {self.promise}."
        if not self.actions:
            headline = f"Found: the state in which the search begins breaks the promise: {self.promise}."
        ended = f"  Ended by {self.ended_by}: {text.counted(self.states, 'state')}, {self.engine}. Left out: {self.left_out}."
        return f"{headline}\n{self.strip!r}\n{ended}"

    def svg(self) -> str:
        return self.strip.svg()


class NotFound(SearchOutcome):
    """The result of a search that found no run that breaks the promise, a condition on the cluster's states.

    `ended_by` names the limit that ended the search, such as "seconds"; `left_out` describes the runs that were not searched.
    """

    def __repr__(self) -> str:
        ends = {
            "steps": f"all runs of up to {text.counted(self.budget.steps, 'step')} with at most {self._most_faults} are searched",
            "faults": f"all runs with at most {self._most_faults} are searched",
            "states": f"the bound of {text.counted(self.budget.states, 'state')} is reached",
            "seconds": f"the bound of {self.budget.seconds:g} s is reached",
        }
        ended = ends.get(self.ended_by, "every state that the cluster can reach is searched")
        return (
            f"Not found: no run that was searched breaks the promise: {self.promise}.\n"
            f"  Ended by {self.ended_by}: {ended}; {text.counted(self.states, 'state')}, {self.engine}.\n"
            f"  Left out: {self.left_out}."
        )


def search(
    lab: Any, promise: object, bounds: Mapping[str, Any] | None, faults: Sequence[str], spark: SparkSession | None
) -> Found | NotFound:
    """Search all orders of actions from the state of `lab` for a shortest run that breaks `promise`.

    `bounds` is, for example, {"steps": 14}; `faults` has kinds of faults, such as "kill". Raises UserError for an illegal value.
    """
    lab._require_open()
    within, asked, begun = budget(bounds), promises.promise(promise), lab.branch()
    return searched(with_faults(begun._world, faults), asked, within, begun.branch, spark)


def searched(
    world: World, promise: Promise, budget: Budget, begin: Callable[[], Lab], spark: SparkSession | None = None
) -> Found | NotFound:
    """Search the runs from `world` for a shortest run that breaks `promise`: return Found with this run, else NotFound.

    `budget` bounds the search. `begin` returns a new lab in the state of `world`, for `Found.open`. With `spark`, Spark's
    executors search.
    """
    began = time.monotonic()
    if (session := arguments.spark_session(spark)) is not None:
        result, place = spark_search.search_within(session, world, budget, (promise,)), " on Spark"
    else:
        result, place = search_within(world, budget, (promise,)), ""
    outcome = promise, budget, world, place, time.monotonic() - began
    return Found(outcome, result, begin) if result.violation else NotFound(result, *outcome)


def with_faults(world: World, kinds: Sequence[str]) -> World:
    """Raises UserError, which lists the kinds, for an unknown kind."""
    given = (kinds,) if isinstance(kinds, str) or not isinstance(kinds, Iterable) else tuple(kinds)
    if unknown := [kind for kind in given if kind not in KINDS]:
        raise UserError(f"{arguments.shown(unknown[0])} is no kind of fault: choose some of {', '.join(KINDS)}.")
    forked = world.fork(keep_replay_logs=True)
    forked.settings = replace(forked.settings, faults=given)
    return forked


def budget(given: Mapping[str, Any] | None) -> Budget:
    """Return the bounds of a search; a bound that `given` lacks has its default.

    Defaults (USUAL): steps 14, faults 1, states 100,000, seconds 60. Raises UserError for an unknown bound or an illegal value.
    """
    found = arguments.mapping(given, "The budget", '{"steps": 14, "faults": 1, "states": 100_000, "seconds": 60}')
    for name, value in found.items():
        if name not in Budget._fields:
            raise UserError(f"A budget has no bound {arguments.shown(name)}: its bounds are {', '.join(Budget._fields)}.")
        # A bound is not negative, and whole but for `seconds`.
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not is_number or value < 0 or (name != "seconds" and value != int(value)):
            raise UserError(f"The bound {name} must be a number that is not negative, such as {getattr(USUAL, name)}.")
    return USUAL._replace(**{name: value if name == "seconds" else int(value) for name, value in found.items()})


def _steps(result: SearchResult) -> Iterator[StripStep]:
    """The run is played in a new world, after the actions that preceded the search."""
    world = World(result.settings)
    for action in result.past:
        world.step(action)
    for action in result.actions:
        world.step(action)
        lane = str(action[1]) if action[0] in BROKERS_OWN else OUTSIDE
        yield StripStep(lane, text.action_label(action), _effect(world.last_step))


def _effect(records: Sequence[Record]) -> str:
    """Return a short text for the first effect of a step, such as "is elected" or "writes t-0"; "" without an effect."""
    for record in records:
        if record.kind == "group" and record.fields["group_metadata"] is not None:
            return str(record.fields["to"]).removesuffix("Rebalance")  # short, since steps are narrow
        if record.kind == "change" and record.fields["write"]:
            # Other effects are "writes t-0" for a state znode, and a group's new state without "Rebalance", such as
            # "Preparing".
            return f"writes {record.fields['subject']}"
        for kind, path, *_ in record.fields["ops"] if record.kind == "write" and record.fields["error"] is None else ():
            if path == CONTROLLER and kind == "create":
                return "is elected"
            if tp := parse_state_path(path):
                return f"writes {tp}"
    return ""
