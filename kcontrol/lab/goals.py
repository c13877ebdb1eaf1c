"""How far a lab runs: until it is quiet, until something has happened, until a sentence or a function of the lab is true."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from kcontrol import events
from kcontrol.errors import UserError
from kcontrol.runtime.journal import Record
from kcontrol.views import scene, text
from kcontrol.znodes import CONTROLLER, broker_path, topic_path

QUIET = "quiet"
ELECTED = "a controller is elected"
EVENTS = tuple(
    sorted(
        name
        for name, value in vars(events).items()
        if isinstance(value, type) and issubclass(value, events.Event) and not value.__subclasses__()
    )
)

Goal = Callable[[Any, Sequence[Record]], bool]
"""A function of the lab and of the records of its last step."""


# fmt: off
SENTENCES: dict[str, Callable[[scene.State, str], bool]] = {
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
"""What can be waited for, as ZooKeeper has it; "t-0", "t" and "3" stand for any partition, topic and broker.

A leader and a controller count while their process runs. A partition has no leader where its state znode says -1.
"""

EXAMPLES = {"t-0": r"(\S+-\d+)", "topic t ": r"topic (\S+) ", "broker 3": r"broker (\d+)"}


def _pattern(sentence: str) -> re.Pattern[str]:
    found = next((example for example in EXAMPLES if example in sentence), None)
    return re.compile(sentence.replace(found, EXAMPLES[found]) if found else sentence)


PATTERNS = {sentence: _pattern(sentence) for sentence in SENTENCES}


def _sentence(until: object) -> Goal | None:
    """The goal of a sentence; None for everything else."""
    for sentence, pattern in PATTERNS.items():
        if isinstance(until, str) and (said := pattern.fullmatch(until)):
            holds, name = SENTENCES[sentence], next(iter(said.groups()), "")
            return lambda lab, step: holds(lab.state, name)
    return None


def _named(state: scene.State, name: str) -> list[scene.Partition]:
    return [partition for partition in scene.partitions(state) if partition.name == name]


def _is_led(state: scene.State, name: str) -> bool:
    return any(str(partition.leader) in state["nodes"] for partition in _named(state, name))


def _is_in_sync(state: scene.State, name: str) -> bool:
    return all(set(partition.isr) == set(partition.replicas) for partition in _named(state, name))


def _controller(state: scene.State) -> int | None:
    ruler = scene.controller(state)
    return ruler[0] if ruler and str(ruler[0]) in state["nodes"] else None


def goal(until: str | Callable[[Any], object]) -> Goal:
    """What `until` means. Raises UserError, listing what there is, for words that mean nothing."""
    if callable(until):
        reached = until
        return lambda lab, step: bool(reached(lab))
    if until == QUIET:
        return lambda lab, step: False
    if until == ELECTED:
        return lambda lab, step: any(map(_elects, step))
    if until in EVENTS:
        return lambda lab, step: any(record.kind == "begin" and record.fields["event"] == until for record in step)
    if found := _sentence(until):
        return found
    sentences = ", ".join(map(repr, SENTENCES))
    ways = f"say {QUIET!r}, {ELECTED!r}, {sentences} (with names of your own), a function of the lab, or the name of an event"
    said = text.clean(repr(until), 100)
    raise UserError(f"A lab cannot run until {said}: {ways} that a broker begins with, one of {', '.join(EVENTS)}.")


def _elects(record: Record) -> bool:
    f = record.fields
    return record.kind == "write" and f["error"] is None and any(op[:2] == ["create", CONTROLLER] for op in f["ops"])
