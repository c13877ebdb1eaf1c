"""Finds the first decision about a partition that differs between two journals.

A decision is a new leader, ISR and leader epoch in the state znode, an election that finds no leader, or the deletion of the
partition.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from kcontrol.journal.journal import Record, RecordId, why
from kcontrol.views import explanations, text
from kcontrol.views.decisions import NO_LEADER, about_partitions


class Decision(NamedTuple):
    """A decision about a partition's leader or ISR: its outcome as values and in words, and the journal record that has it."""

    # (leader, each member of the ISR, leader epoch), such as (1, 1, 2, 0), ("no leader elected",) or ("deleted",). Two releases
    # make equal decisions by different reads and writes, so everything else is left out, also the controller epoch and the
    # znode's version, because they count attempts.
    outcome: tuple[Any, ...]
    words: str
    record: Record
    # The number of actions from outside before the decision, such as a kill of a broker.
    acts: int
    # The journal record of the last of these actions, None if there is none.
    act: Record | None


class Differing(NamedTuple):
    """The first decisions about `partition` that differ, one per run: the n-th decision of each run about the partition.

    None stands for a run with fewer decisions.
    """

    partition: str
    decisions: tuple[Decision | None, Decision | None]


def decisions(records: Sequence[Record]) -> dict[str, list[Decision]]:
    """Return each partition's decisions about its leader and ISR in the order of the journal: `{"t-0": [...]}`."""
    found: dict[str, list[Decision]] = defaultdict(list)
    acts, act = 0, None
    for record in records:
        if record.kind in text.ACTS:
            acts, act = acts + 1, record
        for partition, outcome, words in about_partitions(record):
            # A decision with the outcome of the decision before it is left out.
            if not found[partition] or found[partition][-1].outcome != outcome:
                found[partition].append(Decision(outcome, words, record, acts, act))
    return dict(found)


def first_difference(one: Sequence[Record], other: Sequence[Record]) -> Differing | None:
    """Return the first decision about a partition that differs between the journals `one` and `other`; None if all are equal."""
    left, right = decisions(one), decisions(other)
    found = []
    for partition in sorted({*left, *right}):
        for pair in zip_longest(left.get(partition, []), right.get(partition, [])):
            if pair[0] is None or pair[1] is None or pair[0].outcome != pair[1].outcome:
                found.append((partition, pair))
                break
    # Of several partitions, the decision with the fewest actions from outside (such as kills) before it is first.
    return Differing(*min(found, key=lambda item: _place(item[1]))) if found else None


def _place(pair: tuple[Decision | None, Decision | None]) -> tuple[int, RecordId]:
    return min((decision.acts, decision.record.id) for decision in pair if decision is not None)


def say(decision: Decision | None, partition: str) -> str:
    """Return the decision as a sentence; for None, the sentence that there is no further decision about `partition`."""
    return text.clean(f"{decision.words}.") if decision else f"No further decision about {partition}."


def rule(decision: Decision | None, records: Sequence[Record], release: str) -> tuple[str, str]:
    """Return (rule, source): the rule by which Kafka made a decision, as a sentence, and Kafka's function with this rule.

    The function is that of `release`. Both are "" if no rule is found. `records` is the journal with the decision.
    """
    if decision is None:
        return "", ""
    if decision.outcome == NO_LEADER:
        refused = decision.record.to_json()
        row = (refused.fields[name] for name in ("machine", "source", "target"))
        return explanations.note(*row), explanations.kafka_source(refused, release)
    # The rule is that of the decision's own journal record, else that of the nearest record in its chain of causes which has a
    # rule.
    for record in (decision.record, *why(records, decision.record.id)):
        said = explanations.rule(record.to_json())
        if said:
            return said, explanations.kafka_source(record.to_json(), release)
    return "", ""
