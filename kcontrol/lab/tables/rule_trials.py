"""Trials of election rules: equal series of random kills and starts of brokers under each of several rules.

For each rule a table counts elections, unclean elections, and offline windows with their length.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kcontrol.cluster.actions import routine_actions
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import Action, World
from kcontrol.core.errors import UserError
from kcontrol.journal.journal import Record
from kcontrol.lab.history.entries import entries_of
from kcontrol.lab.history.partitions import offline_windows
from kcontrol.lab.support import arguments, replacements
from kcontrol.lab.support.late import pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views.decisions import written

CONTROLLER, BROKERS = 4, (1, 2, 3)
TOPIC, ASSIGNMENT = "t", ((1, 2, 3), (2, 3, 1), (3, 1, 2))
FAULTS = 8
# Sums over the runs: changes of a leader to another broker, changes to a broker outside the ISR, offline windows of partitions,
# and the total length of these windows in ms of virtual time.
COLUMNS = {"runs": "int64", "elections": "int64", "unclean": "int64", "offline_windows": "int64", "offline_ms": "int64"}

Rule = Callable[..., Any] | None


def trials(rules: Mapping[str, Rule], runs: int, seed: int) -> pd.DataFrame:
    """Return one row per rule for the offline election: its elections and offline windows in `runs` clusters.

    A rule None in `rules` stands for Kafka's rule; `seed` determines the random failures. Raises UserError if a rule raises.
    """
    # A rule is a function like `leader_election.offline`. Every rule meets equal failures: eight kills and starts of brokers per
    # cluster, drawn with `seed`.
    series = [list(_failures(random.Random(f"{seed} {number}"))) for number in range(arguments.count(runs, "The number of runs"))]
    rows = ({"rule": name, **_trial_row(name, rule, series)} for name, rule in rules.items())
    return journal_tables.table(rows, COLUMNS, "rule")


def _failures(chance: random.Random) -> Iterator[Action]:
    """Random kills of the brokers 1 to 3, and their starts; broker 4, the controller, is never killed."""
    up = set(BROKERS)
    for _ in range(FAULTS):
        broker = chance.choice(BROKERS)
        yield ("kill" if broker in up else "start", broker)
        up ^= {broker}


def _trial_row(name: str, rule: Rule, series: Sequence[Sequence[Action]]) -> Counter[str]:
    changes = replacements.changes(Settings().release, strategies={"offline": rule} if rule else {})
    total = Counter[str](runs=len(series))
    for failures in series:
        records = _play(Settings(brokers=(CONTROLLER, *BROKERS), changes=changes), failures)
        if failed := next((r for r in records if r.kind == "handler_error"), None):
            raise UserError(f"The trial of rule {name!r} failed: {failed.fields['message']}.")
        total.update(counted(records))
    return total


def _play(settings: Settings, failures: Sequence[Action]) -> Sequence[Record]:
    world = World(settings)
    starts = [("start", broker) for broker in settings.brokers]
    for action in [*starts, ("create_topic", TOPIC, ASSIGNMENT), *failures]:
        world.step(action)
        while following := next(routine_actions(world), None):
            world.step(following)
    return world.journal.records


def counted(records: Sequence[Record]) -> Counter[str]:
    """Count the elections, unclean elections and offline windows in a journal, and add up the lengths of the windows in ms."""
    found, held = Counter[str](), dict[str, dict[str, Any]]()
    for record in records:
        for partition, stored in written(record).items():
            before = held.get(partition, stored)
            moved = stored["leader"] not in (-1, before["leader"])
            found["elections"] += moved
            found["unclean"] += moved and stored["leader"] not in before["isr"]
            held[partition] = stored
    ends = records[-1].at_ms
    for row in offline_windows(entries_of(records)):
        found["offline_windows"] += 1
        found["offline_ms"] += (ends if row["end_ms"] is None else row["end_ms"]) - row["begin_ms"]
    return found
