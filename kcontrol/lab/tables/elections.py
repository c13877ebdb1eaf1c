"""Tables of elections: the replicas of a partition as candidates for its leadership, and the kinds of elections."""

from __future__ import annotations

import inspect
import json
from collections.abc import Collection
from typing import Any

from kcontrol.controller.leader_election import STRATEGIES, ElectionInput, offline
from kcontrol.core.controller_rules import Rules
from kcontrol.core.errors import UserError
from kcontrol.core.rule_fields import declared
from kcontrol.core.znodes import broker_path, topic_config_path
from kcontrol.lab.run import Run
from kcontrol.lab.support.late import frames, pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views import folded_state, replica_strip, text

UNCLEAN = "unclean.leader.election.enable"
COLUMNS = {"broker": "int64", "alive": "bool", "in_sync": "bool", "leads": "bool", "verdict": "string"}
ELECTIONS = {"held_when": "string", "leader": "string", "order": "string", "sent_to": "string"}


class CandidateTable:
    """The replicas of one partition as candidates for its next leader, as a picture and as text; `table` is a DataFrame."""

    def __init__(self, title: str, candidates: tuple[replica_strip.Candidate, ...]) -> None:
        self.title, self.candidates = title, candidates

    @property
    def table(self) -> pd.DataFrame:
        """One row per replica, in the order of the assignment; `verdict` begins with "next" for the next leader."""
        return journal_tables.table((c._asdict() for c in self.candidates), COLUMNS)

    def __repr__(self) -> str:
        return replica_strip.lines(self.title, self.candidates)

    def _repr_svg_(self) -> str:
        return replica_strip.svg(self.title, self.candidates)


def election_candidates(run: Run, partition: str) -> CandidateTable:
    """The replicas of a partition: the next leader, and the reason against each other replica.

    Verdicts are "dead", "next" (the next leader), "next, unclean" (the next leader, outside the ISR) and others. Raises
    UserError for an unknown partition.

    Source: PartitionLeaderElectionAlgorithms.offlinePartitionLeaderElection (2.8); OfflinePartitionLeaderSelector (0.8.1).
    """
    state, unclean = run.state, run._allows_unclean()
    p = find(state, partition)
    # A replica counts as alive if its broker is registered in ZooKeeper.
    live = {b for b in p.replicas if broker_path(b) in state["znodes"]}
    # The topic's own setting overrides that of the brokers.
    allowed = _topic_setting(state, p.topic, unclean)
    asked = ElectionInput(p.replicas, p.isr, live - {p.leader}, unclean_allowed=allowed, order=run._rules().offline_order)
    elected = offline(asked)
    chosen = elected.leader if elected else None
    rows = tuple(
        replica_strip.Candidate(b, b in live, b in p.isr, b == p.leader, _verdict(p, b, live, chosen, elected))
        for b in p.replicas
    )
    return CandidateTable(f"{p.name}: ISR {list(p.isr)}, leader {p.leader if p.leader not in (None, -1) else 'none'}", rows)


def find(state: folded_state.State, partition: str) -> folded_state.Partition:
    """Return a partition by its name. Raises UserError, which lists the partitions, for an unknown name."""
    if found := folded_state.find(state, partition):
        return found
    names = text.listed((p.name for p in folded_state.partitions(state)), 30)
    raise UserError(f"There is no partition {partition!r}; {f'the partitions are {names}' if names else 'there are none yet'}.")


def _verdict(p: folded_state.Partition, broker: int, live: Collection[int], chosen: int | None, elected: Any) -> str:
    if broker == p.leader:
        return "leads" if broker in live else "led, is dead"
    if broker not in live:
        return "dead"
    if broker == chosen:
        return "next, unclean" if elected.unclean else "next"
    return "in sync" if broker in p.isr else "not in sync"


def _topic_setting(state: folded_state.State, topic: str, default: bool) -> bool:
    """Whether unclean elections are allowed: by the topic's config znode, else (also if it is malformed) `default`."""
    stored = state["znodes"].get(topic_config_path(topic))
    try:
        value = json.loads(stored[0])["config"].get(UNCLEAN) if stored else None
    except (ValueError, KeyError, TypeError, AttributeError):
        value = None
    return default if value is None else str(value).lower() == "true"


def elections() -> pd.DataFrame:
    """Return one row per kind of election, such as "offline".

      held_when  the condition for the election, such as "its leader is not online"
      leader     the rule that chooses the leader
      order      the order of the candidates by release: that of the ISR, or that of the assigned replicas (AR)
      sent_to    the brokers that receive LeaderAndIsr after the election

    An empty `order` means that the order is equal in all releases.
    """
    return frames.Wide(journal_tables.table((_row(name) for name in STRATEGIES), ELECTIONS, "election"))


def _row(name: str) -> dict[str, Any]:
    strategy = STRATEGIES[name]
    leader = (inspect.getdoc(strategy.rule) or "").split("\n")[0]
    rule = declared(Rules).get(f"{name}_order")
    order = "; ".join(f"{value.upper()} since {since}" for since, value in (rule.rows if rule else ()))
    return {"election": name, "held_when": strategy.note, "leader": leader, "order": order, "sent_to": strategy.recipients}
