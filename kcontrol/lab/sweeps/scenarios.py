"""SCENARIOS: the scenarios of sweeps by name, each with the events of a run, such as kills of brokers.

Each run has four brokers, the topic t with three partitions, a producer, and consumers in the group "billing". Equal seeds of
the random generator give equal events.
"""

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kcontrol.cluster.world import Action
from kcontrol.lab.support import arguments

BROKERS, TOPIC, PARTITIONS, GROUP = (1, 2, 3, 4), "t", 3, "billing"
PRODUCE = "send"
RECORD_EVERY_MS, DEATHS, CHANGES = 2_000, 4, 8


class Event(NamedTuple):
    """An action of a scenario, such as the kill of a broker, and its time in ms since the run's events began."""

    at_ms: int
    # The action ("send", partition, acks) sends a record.
    action: Action


class Scenario(NamedTuple):
    """A scenario of a sweep, such as "rolling restart": its events, and the consumers of its group."""

    # The events in words, such as "each broker is stopped and started once, at random distances".
    sentence: str
    # The names of the consumers.
    consumers: tuple[str, ...]
    # A function that yields the events of one run, at random times.
    events: Callable[[random.Random], Iterator[Event]]


def rolling_restart(chance: random.Random) -> Iterator[Event]:
    """A broker may be stopped before the preceding broker is started again."""
    at_ms = chance.randint(5_000, 10_000)
    for broker in BROKERS:
        yield Event(at_ms, ("terminate", broker))
        yield Event(at_ms + chance.randint(2_000, 20_000), ("start", broker))
        at_ms += chance.randint(5_000, 25_000)


def random_deaths(chance: random.Random) -> Iterator[Event]:
    """Four kills, and a restart of each consumer, within about a minute; a broker starts again after 1 to 30 s."""
    for _ in range(DEATHS):
        broker, at_ms = chance.choice(BROKERS), chance.randint(5_000, 65_000)
        yield Event(at_ms, ("kill", broker))
        yield Event(at_ms + chance.randint(1_000, 30_000), ("start", broker))
    for name in TWO:
        yield Event(chance.randint(5_000, 65_000), ("restart", name))


def coming_and_going(chance: random.Random) -> Iterator[Event]:
    """Yield the events of eight (CHANGES) changes, each at a random time from 5 s to 65 s.

    In a change a random consumer leaves and comes back, is frozen for a time, or restarts.
    """
    for _ in range(CHANGES):
        name, at_ms, away_ms = chance.choice(FOUR), chance.randint(5_000, 65_000), chance.randint(1_000, 30_000)
        kind = chance.choice(("leave", "freeze", "restart"))
        if kind == "freeze":
            yield Event(at_ms, ("freeze_consumer", name, away_ms))
        else:
            yield Event(at_ms, (kind, name))
        if kind == "leave":
            yield Event(at_ms + away_ms, ("start_polling", name))


TWO, FOUR = ("anna", "bert"), ("anna", "bert", "cleo", "dora")
SCENARIOS = {
    "rolling restart": Scenario("each broker is stopped and started once, at random distances", TWO, rolling_restart),
    "random deaths": Scenario("four kills of random brokers, which start again; two consumers restart once", TWO, random_deaths),
    "consumers come and go": Scenario("eight times a consumer leaves, is frozen or starts again", FOUR, coming_and_going),
}


def named(name: object) -> Scenario:
    """Return the scenario with this name. Raises UserError, which lists the scenarios, for any other value."""
    return SCENARIOS[arguments.one_of(name, SCENARIOS, "scenario")]


def plan(scenario: Scenario, chance: random.Random) -> list[Event]:
    """Return the events of one run in the order of their times: those of the scenario, and the records of the producer."""
    events = list(scenario.events(chance))
    last_ms = max(event.at_ms for event in events)
    sends = (
        Event(at_ms, (PRODUCE, number % PARTITIONS, ("all", "1")[number // PARTITIONS % 2]))
        for number, at_ms in enumerate(range(RECORD_EVERY_MS, last_ms, RECORD_EVERY_MS))
    )
    return sorted((*events, *sends), key=lambda event: event.at_ms)
