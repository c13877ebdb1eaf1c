"""Who could lead a partition, and why: its replicas judged by the rule that the controller itself asks."""

from __future__ import annotations

import inspect
import json
from collections.abc import Collection
from typing import Any

import pandas as pd

from kcontrol.controller.election import STRATEGIES, Candidates, offline
from kcontrol.errors import UserError
from kcontrol.generations import RULES, Rules
from kcontrol.lab import tables
from kcontrol.lab.frames import Wide
from kcontrol.views import scene, strip, text
from kcontrol.znodes import broker_path, topic_config_path

UNCLEAN = "unclean.leader.election.enable"
COLUMNS = {"broker": "int64", "alive": "bool", "in_sync": "bool", "leads": "bool", "verdict": "string"}
ELECTIONS = {"held_when": "string", "leader": "string", "order": "string", "told": "string"}


class Strip:
    """The replicas of one partition with their verdicts: a picture, a text, and as `table` one row per replica."""

    def __init__(self, title: str, candidates: tuple[strip.Candidate, ...]) -> None:
        self.title, self.candidates = title, candidates

    @property
    def table(self) -> pd.DataFrame:
        """One row per replica, in the order of the assignment."""
        return tables.table((c._asdict() for c in self.candidates), COLUMNS)

    def __repr__(self) -> str:
        return strip.lines(self.title, self.candidates)

    def _repr_svg_(self) -> str:
        return strip.svg(self.title, self.candidates)


def candidates(state: scene.State, partition: str, rules: Rules, unclean: bool) -> Strip:
    """Each replica of a partition: who leads, who would be next if an offline election were held now, and why not the others.

    Alive is who is registered in ZooKeeper. `unclean` is the broker's setting, which the topic's own overrides.

    Source: PartitionLeaderElectionAlgorithms.offlinePartitionLeaderElection (2.8); OfflinePartitionLeaderSelector (0.8.1).
    """
    p = find(state, partition)
    live = {b for b in p.replicas if broker_path(b) in state["znodes"]}
    allowed = _topic_setting(state, p.topic, unclean)
    asked = Candidates(p.replicas, p.isr, live - {p.leader}, unclean=allowed, order=rules.offline_order)
    elected = offline(asked)
    chosen = elected.leader if elected else None
    rows = tuple(
        strip.Candidate(b, b in live, b in p.isr, b == p.leader, _verdict(p, b, live, chosen, elected)) for b in p.replicas
    )
    return Strip(f"{p.name}: ISR {list(p.isr)}, leader {p.leader if p.leader not in (None, -1) else 'none'}", rows)


def find(state: scene.State, partition: str) -> scene.Partition:
    """A partition by its name. Raises UserError, listing those that there are, for one that is not there."""
    every = scene.partitions(state)
    for p in every:
        if p.name == partition:
            return p
    names = text.listed((p.name for p in every), 30)
    raise UserError(f"There is no partition {partition!r}; {f'there are {names}' if names else 'there is none yet'}.")


def _verdict(p: scene.Partition, broker: int, live: Collection[int], chosen: int | None, elected: Any) -> str:
    if broker == p.leader:
        return "leads" if broker in live else "led, is dead"
    if broker not in live:
        return "dead"
    if broker == chosen:
        return "next, unclean" if elected.unclean else "next"
    return "in sync" if broker in p.isr else "not in sync"


def _topic_setting(state: scene.State, topic: str, default: bool) -> bool:
    """Whether unclean elections are allowed for a topic; a setting that cannot be read counts as none."""
    stored = state["znodes"].get(topic_config_path(topic))
    try:
        value = json.loads(stored[0])["config"].get(UNCLEAN) if stored else None
    except (ValueError, KeyError, TypeError, AttributeError):
        value = None
    return default if value is None else str(value).lower() == "true"


def elections() -> pd.DataFrame:
    """One row per kind of election: when it is held, who leads, whose order decides, and who is told."""
    return Wide(tables.table((_row(name) for name in STRATEGIES), ELECTIONS, "election"))


def _row(name: str) -> dict[str, Any]:
    strategy = STRATEGIES[name]
    leader = (inspect.getdoc(strategy.rule) or "").split("\n")[0]
    rows = RULES.get(f"{name}_order", ())
    order = "; ".join(f"{value.upper()} since {since}" for since, value in rows)
    return {"election": name, "held_when": strategy.note, "leader": leader, "order": order, "told": strategy.recipients}
