"""Makes the condition for the end of `Lab.run` from the argument `until`.

`until` is "quiet", the name of an event, a sentence such as "t-0 has a leader", a duration, or a function of the lab.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from kcontrol.broker import events as broker_events
from kcontrol.broker.broker_configs import LARGEST_INT
from kcontrol.cluster.world import World
from kcontrol.core import events
from kcontrol.core.errors import UserError
from kcontrol.core.znodes import CONTROLLER, broker_path, topic_path
from kcontrol.group.handlers import THREADS
from kcontrol.journal.journal import Record
from kcontrol.views import folded_state, text

QUIET = "quiet"
DIGITS = 20  # of a duration
ELECTED = "a controller is elected"
_NAMED = vars(broker_events) | vars(events) | {event.__name__: event for event in THREADS}
_CLASSES = {name: value for name, value in _NAMED.items() if isinstance(value, type) and issubclass(value, events.Event)}
EVENTS = tuple(sorted(name for name, event in _CLASSES.items() if not event.__subclasses__()))

Goal = Callable[[Any, Sequence[Record]], bool]
"""A function of the lab and of the records of its last step."""


# fmt: off
SENTENCES: dict[str, Callable[[folded_state.State, str], bool]] = {
    "t-0 has a leader":          lambda state, name: _is_led(state, name),
    "t-0 has no leader":         lambda state, name: any(p.leader == -1 for p in _named(state, name)),
    "t-0 is fully in sync":      lambda state, name: _is_led(state, name) and _is_in_sync(state, name),
    "topic t exists":            lambda state, name: topic_path(name) in state["znodes"],
    "topic t is gone":           lambda state, name: topic_path(name) not in state["znodes"],
    "broker 3 is controller":    lambda state, name: (ruler := _controller(state)) is not None and str(ruler) == name,
    "broker 3 is registered":    lambda state, name: broker_path(int(name)) in state["znodes"],
    "broker 3 is unregistered":  lambda state, name: broker_path(int(name)) not in state["znodes"],
    "there is a controller":     lambda state, name: _controller(state) is not None,
    "there is no controller":    lambda state, name: CONTROLLER not in state["znodes"],
}
# fmt: on
"""The conditions that `run` can wait for, read from ZooKeeper; "t-0", "t" and "3" stand for any partition, topic and broker.

A leader and a controller count while their process runs. A partition has no leader if its state znode has leader -1.
"""

EXAMPLES = {"t-0": r"(\S+-\d+)", "topic t ": r"topic (\S+) ", "broker 3": r"broker (\d+)"}


def _pattern(sentence: str) -> re.Pattern[str]:
    found = next((example for example in EXAMPLES if example in sentence), None)
    return re.compile(sentence.replace(found, EXAMPLES[found]) if found else sentence)


PATTERNS = {sentence: _pattern(sentence) for sentence in SENTENCES}


def _sentence(until: object) -> Goal | None:
    """A sentence as in SENTENCES, about any partition, topic or broker; None for any other `until`."""
    for sentence, pattern in PATTERNS.items():
        if isinstance(until, str) and (said := pattern.fullmatch(until)):
            holds, name = SENTENCES[sentence], next(iter(said.groups()), "")
            return lambda lab, step: holds(lab.state, name)
    return None


def _named(state: folded_state.State, name: str) -> list[folded_state.Partition]:
    return [partition for partition in folded_state.partitions(state) if partition.name == name]


def _is_led(state: folded_state.State, name: str) -> bool:
    return any(str(partition.leader) in state["nodes"] for partition in _named(state, name))


def _is_in_sync(state: folded_state.State, name: str) -> bool:
    return all(set(partition.isr) == set(partition.replicas) for partition in _named(state, name))


def _controller(state: folded_state.State) -> int | None:
    ruler = folded_state.controller(state)
    return ruler[0] if ruler and str(ruler[0]) in state["nodes"] else None


DURATION = re.compile(r"([0-9]+) ?(ms|s)")


def end_ms(world: World, until: object, alive: bool) -> int | None:
    """Return the virtual time in ms at which the duration `until`, such as "12 s", ends; None if `until` is no duration.

    `alive` means that consumers send requests by themselves. Raises UserError for `alive` without simulated consumers, and for a
    duration if `alive` is False.
    """
    said = DURATION.fullmatch(until) if isinstance(until, str) else None
    # Consumers that are alive send requests by themselves.
    if alive and not (world.settings.consumers and world.is_simulated):
        raise UserError(
            "Consumers run by themselves only in a simulated world with consumers, as in Lab(consumers={'anna': 'g'})."
        )
    if said and not alive:
        raise UserError(f"A lab runs for a duration only with its consumers: use lab.run({until!r}, alive=True).")
    return world.now_ms + _duration_ms(*said.groups()) if said else None


def _duration_ms(number: str, unit: str) -> int:
    """Return a duration in ms; `unit` is "s" or "ms". Raises UserError for a duration above LARGEST_INT ms."""
    per_unit = 1000 if unit == "s" else 1
    # A text with more digits is too large, and no number for Python either.
    if len(number) > DIGITS or int(number) * per_unit > LARGEST_INT:
        shown = text.clean(number, 30)
        raise UserError(f"A lab cannot run for {shown} {unit}: a duration is at most {LARGEST_INT // per_unit} {unit}.")
    return int(number) * per_unit


def goal(until: str | Callable[[Any], object]) -> Goal:
    """Return the condition for `until`, such as "t-0 has a leader".

    The condition is a function of (lab, journal records of the lab's last step) that returns a bool. Raises UserError, which
    lists the legal values, for an unknown text.
    """
    # A learner's function of the lab is reached when it returns a true value.
    if callable(until):
        reached = until
        return lambda lab, step: bool(reached(lab))
    if until == QUIET:
        return lambda lab, step: False
    if until == ELECTED:
        return lambda lab, step: any(map(_elects, step))
    # The name of an event, such as "BrokerChange", is reached when a handler of the event has begun.
    if until in EVENTS:
        return lambda lab, step: any(record.kind == "begin" and record.fields["event"] == until for record in step)
    if found := _sentence(until):
        return found
    sentences = ", ".join(map(repr, SENTENCES)) + " (with your own names), a duration such as '12 s' with alive=True"
    ways = f"use {QUIET!r}, {ELECTED!r}, {sentences}, a function of the lab, or the name of an event"
    wrong = text.clean(repr(until), 100)
    raise UserError(f"A lab cannot run until {wrong}: {ways} that a broker begins to handle, one of {', '.join(EVENTS)}.")


def _elects(record: Record) -> bool:
    f = record.fields
    return record.kind == "write" and f["error"] is None and any(op[:2] == ["create", CONTROLLER] for op in f["ops"])
