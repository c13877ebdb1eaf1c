"""A rule judged by its consequences: the same random failures under each of several rules, and what became of the partitions."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from kcontrol.errors import UserError
from kcontrol.lab import outages, replacing, tables
from kcontrol.runtime.journal import Record
from kcontrol.sim.acts import routine
from kcontrol.sim.settings import Settings
from kcontrol.sim.world import Action, World
from kcontrol.views.decisions import written

CONTROLLER, BROKERS = 4, (1, 2, 3)
TOPIC, ASSIGNMENT = "t", ((1, 2, 3), (2, 3, 1), (3, 1, 2))
FAULTS = 8
COLUMNS = {"runs": "int64", "elections": "int64", "unclean": "int64", "down": "int64", "steps_down": "int64"}

Rule = Callable[..., Any] | None


def trials(rules: Mapping[str, Rule], runs: int, seed: int) -> pd.DataFrame:
    """One row per rule, all of them under the same `runs` series of deaths and returns; None is Kafka's own rule.

    `elections` counts changes of a leader to another broker, `unclean` those to a broker outside the ISR, `down` how often a
    partition had no living leader, and `steps_down` for how many steps in all. Raises UserError for a rule that fails.
    """
    series = [list(_failures(random.Random(f"{seed} {number}"))) for number in range(runs)]
    return tables.table(({"rule": name, **_judged(name, rule, series)} for name, rule in rules.items()), COLUMNS, "rule")


def _failures(chance: random.Random) -> Iterator[Action]:
    """Brokers die and come back, the controller's own broker excepted."""
    up = set(BROKERS)
    for _ in range(FAULTS):
        broker = chance.choice(BROKERS)
        yield ("kill" if broker in up else "start", broker)
        up ^= {broker}


def _judged(name: str, rule: Rule, series: Sequence[Sequence[Action]]) -> Counter[str]:
    replace = replacing.checked({"election.offline": rule}) if rule else {}
    total = Counter[str](runs=len(series))
    for failures in series:
        records = _play(Settings(brokers=(CONTROLLER, *BROKERS), replace=replace), failures)
        if failed := next((r for r in records if r.kind == "fail"), None):
            raise UserError(f"The rule {name!r} did not come through: {failed.fields['message']}.")
        total.update(counted(records))
    return total


def _play(settings: Settings, failures: Sequence[Action]) -> Sequence[Record]:
    world = World(settings)
    starts = [("start", broker) for broker in settings.brokers]
    for act in [*starts, ("create_topic", TOPIC, ASSIGNMENT), *failures]:
        world.step(act)
        while following := next(routine(world), None):
            world.step(following)
    return world.journal.records


def counted(records: Sequence[Record]) -> Counter[str]:
    found, held = Counter[str](), dict[str, dict[str, Any]]()
    for record in records:
        for partition, stored in written(record).items():
            before = held.get(partition, stored)
            moved = stored["leader"] not in (-1, before["leader"])
            found["elections"] += moved
            found["unclean"] += moved and stored["leader"] not in before["isr"]
            held[partition] = stored
    ends = records[-1].at_ms
    for row in outages.rows(records):
        found["down"] += 1
        found["steps_down"] += (ends if row["until_ms"] is None else row["until_ms"]) - row["since_ms"]
    return found
