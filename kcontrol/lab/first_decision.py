"""Finds the first decision about a partition that differs between two journals.

A decision about a partition is a new leader, ISR and leader epoch in its state znode, an election that finds no leader, or the
deletion of the partition (`views.decisions`).
Two releases make equal decisions by different reads and writes, so this module compares decisions and leaves out everything else.
It leaves out the controller epoch and the znode's version too, because they count attempts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from kcontrol.journal.journal import Record, RecordId, why
from kcontrol.views import explanations, text
from kcontrol.views.decisions import NO_LEADER, about_partitions


class Decision(NamedTuple):
    """A decision about a partition's leader or ISR: its outcome as values and in words, and the journal record that has it.

    `outcome` is (leader, each member of the ISR, leader epoch), such as (1, 1, 2, 0), ("no leader elected",) or ("deleted",).
    `acts` is the number of actions from outside before the decision, such as a kill of a broker, and `act` the journal record of
    the last of these actions, None if there is none.
    """

    outcome: tuple[Any, ...]
    words: str
    record: Record
    acts: int
    act: Record | None


class Differing(NamedTuple):
    """The first decisions about `partition` that differ, one per run: the n-th decision of each run about the partition.

    The decision of a run is None if the run has fewer than n decisions about the partition.
    """

    partition: str
    decisions: tuple[Decision | None, Decision | None]


def decisions(records: Sequence[Record]) -> dict[str, list[Decision]]:
    """Return each partition's decisions about its leader and ISR in the order of the journal.

    The keys are names of partitions, such as "t-0". A decision is a write of the partition's state znode, an election that finds
    no leader, or the deletion of the partition; a decision with the outcome of the decision before it is left out.
    """
    found: dict[str, list[Decision]] = defaultdict(list)
    acts, act = 0, None
    for record in records:
        if record.kind in text.ACTS:
            acts, act = acts + 1, record
        for partition, outcome, words in about_partitions(record):
            if not found[partition] or found[partition][-1].outcome != outcome:
                found[partition].append(Decision(outcome, words, record, acts, act))
    return dict(found)


def first_difference(one: Sequence[Record], other: Sequence[Record]) -> Differing | None:
    """Return the partition and the decisions of both runs that differ first; None if all decisions about partitions are equal.

    Of several partitions, the decision with the fewest actions from outside (such as kills) before it is first.
    """
    left, right = decisions(one), decisions(other)
    found = []
    for partition in sorted({*left, *right}):
        for pair in zip_longest(left.get(partition, []), right.get(partition, [])):
            if pair[0] is None or pair[1] is None or pair[0].outcome != pair[1].outcome:
                found.append((partition, pair))
                break
    return Differing(*min(found, key=lambda item: _place(item[1]))) if found else None


def _place(pair: tuple[Decision | None, Decision | None]) -> tuple[int, RecordId]:
    return min((decision.acts, decision.record.id) for decision in pair if decision is not None)


def say(decision: Decision | None, partition: str) -> str:
    """Return the decision as a sentence; for None, the sentence that there is no further decision about `partition`."""
    return text.clean(f"{decision.words}.") if decision else f"No further decision about {partition}."


def rule(decision: Decision | None, records: Sequence[Record], release: str) -> tuple[str, str]:
    """Return two texts: the rule behind a decision in words, and the function of Kafka's `release` that has the rule.

    Both are "" if `decision` is None or no rule is found. `records` is the journal with the decision. The rule is that of the
    decision's own journal record, else that of the nearest record in its chain of causes which has a rule.
    """
    if decision is None:
        return "", ""
    if decision.outcome == NO_LEADER:
        refused = decision.record.to_json()
        row = (refused.fields[name] for name in ("machine", "source", "target"))
        return explanations.note(*row), explanations.kafka_source(refused, release)
    for record in (decision.record, *why(records, decision.record.id)):
        said = explanations.rule(record.to_json())
        if said:
            return said, explanations.kafka_source(record.to_json(), release)
    return "", ""
