"""Trials of assignors: equal series of random joins, failures and lags under each of several assignors.

For each assignor a table counts rebalances, moved partitions and uneven assignments, and has the greatest lag.
Source of the assignors: `group/assignors.py`, `group/sticky.py`; of pauses in rebalances: KIP-429.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, cast

from kcontrol.core.errors import UserError, listed
from kcontrol.core.model import TopicPartition
from kcontrol.group.assignors import Subscription, partitions_of
from kcontrol.group.sticky import ASSIGNORS
from kcontrol.lab.support import arguments, own_assignor, replacements
from kcontrol.lab.support.late import pd
from kcontrol.lab.support.own_assignor import Assigned, Assignor
from kcontrol.lab.tables import journal_tables

# A group reads six partitions of one topic. Each second every partition gets records at a rate of its own, and every member
# reads the same number of records from its partitions, the greatest lag first. Every ten seconds the group rebalances: a member
# has joined or failed, or the members are as before and the lag may have changed. A rebalance costs one second of reading:
# under the protocol EAGER for all partitions, under COOPERATIVE for those that change their owner. A cooperative assignor runs
# until every partition is assigned.
TOPIC, NUMBER = "t", 6
NAMES = ("anna", "bert", "cleo", "dora", "emil")
ROUNDS, SECONDS, READ, RATES = 8, 10, 14, (1, 2, 4, 8, 12)
PARTITIONS = tuple(partitions_of({TOPIC: NUMBER}, TOPIC))
# Sums over all series: `moved` counts partitions that another living member had before, `uneven` the assignments in which a
# member has at least two partitions more than another. `greatest_lag` is the greatest number of unread records of a partition,
# as a mean over the series.
COLUMNS = {"runs": "int64", "rebalances": "int64", "moved": "int64", "uneven": "int64", "greatest_lag": "int64"}


class Series(NamedTuple):
    """The random input of one trial: the records per second of each partition, and for each round the members alive.

    A round has ten seconds and begins with a rebalance.
    """

    # One rate per partition, in the order of PARTITIONS.
    rates: tuple[int, ...]
    # The names of the living members of each round.
    rounds: tuple[tuple[str, ...], ...]


def trials(assignors: Mapping[str, Assignor | None], runs: int, seed: int) -> pd.DataFrame:
    """Return one row per assignor: sums over `runs` random trials, such as moved partitions, and the mean of the greatest lags.

    `assignors` maps names to functions; None stands for Kafka's assignor of that name. Raises UserError if an assignor fails.
    """
    # All assignors play equal series.
    series = [random_series(random.Random(f"{seed} {number}")) for number in range(arguments.count(runs, "The number of runs"))]
    rows = []
    for name, own in assignors.items():
        # An assignor fails if it raises, or does not assign each partition to one living member.
        found = [played(name, chosen(name, own), one) for one in series]
        sums = {key: sum(row[key] for row in found) for key in ("rebalances", "moved", "uneven", "greatest_lag")}
        rows.append({"assignor": name, "runs": runs, **sums, "greatest_lag": sums["greatest_lag"] // runs})
    return journal_tables.table(rows, COLUMNS, "assignor")


def chosen(name: str, own: Any) -> Assignor:
    """The learner's assignor, else Kafka's of this name. Raises UserError, with the names, for neither."""
    if callable(own):
        return cast(Assignor, own)
    if own is not None or name not in ASSIGNORS:
        wrong = f"{arguments.shown(name)}: {arguments.shown(own)} is no assignor"
        raise UserError(f"{wrong}: give a function, or None for Kafka's own {listed(ASSIGNORS, 9)}.")
    return ASSIGNORS[name]


def random_series(chance: random.Random) -> Series:
    """Return the random input of a trial: records per second of each partition, living members of each round.

    A round has ten seconds; at its begin a member joins, a member fails, or nothing changes.
    """
    alive = list(NAMES[:3])
    rounds = [tuple(alive)]
    for _ in range(ROUNDS):
        absent = [name for name in NAMES if name not in alive]
        # At the begin of a round one member joins or fails, or the members stay.
        kind = chance.choice(("join", "fail", "stay"))
        if kind == "join" and absent:
            alive.append(chance.choice(absent))
        elif kind == "fail" and len(alive) > 2:
            alive.remove(chance.choice(alive))
        rounds.append(tuple(sorted(alive)))
    return Series(tuple(chance.choice(RATES) for _ in PARTITIONS), tuple(rounds))


def played(name: str, assignor: Assignor, series: Series) -> dict[str, int]:
    """Let an assignor play one trial; return `rebalances`, `moved`, `uneven` and `greatest_lag` (in records).

    `series` has the partitions' rates and each round's members. `moved` counts partitions, `uneven` the assignments in which
    one member has two or more partitions more than another.
    """
    owned: Assigned = {}
    lags = dict.fromkeys(PARTITIONS, 0)
    found = {"rebalances": 0, "moved": 0, "uneven": 0, "greatest_lag": 0}
    is_cooperative = assignor is ASSIGNORS["cooperative-sticky"]
    takes = max(2, replacements.arity(assignor))  # an assignor with two parameters is called without the lags

    def assigned(members: Mapping[str, Subscription]) -> Any:
        return own_assignor.called(name, assignor, *({TOPIC: NUMBER}, members, dict(lags))[:takes])

    for generation, alive in enumerate(series.rounds):
        before = {tp: id for id, tps in owned.items() for tp in tps}
        owned = _rebalanced(name, assigned, {id: owned.get(id, []) for id in alive}, generation, is_cooperative)
        now = {tp: id for id, tps in owned.items() for tp in tps}
        # A partition has moved if another member, which still lives, had it before.
        moved = {tp for tp in now if before.get(tp) in owned and before[tp] != now[tp]}
        sizes = [len(tps) for tps in owned.values()]
        found["rebalances"] += 1
        found["moved"] += len(moved)
        # An assignment is uneven if a member has at least two partitions more than another member.
        found["uneven"] += max(sizes) - min(sizes) > 1
        for second in range(SECONDS):
            paused = () if second else moved if is_cooperative else PARTITIONS
            found["greatest_lag"] = max(found["greatest_lag"], _read(lags, series.rates, owned, paused))
    return found


def _rebalanced(name: str, assigned: Callable[..., Any], owned: Assigned, generation: int, is_cooperative: bool) -> Assigned:
    """Return each member's partitions after the rebalance in round `generation`; `assigned` calls the assignor for members.

    `owned` has the living members with their partitions before; `name` is for errors. If `is_cooperative`, the assignor is
    called until each partition has an owner.
    """
    for number in range(1, NUMBER + 2):
        members = {id: Subscription((TOPIC,), tuple(tps), generation + number) for id, tps in owned.items()}
        owned = own_assignor.checked(name, assigned(members), members, PARTITIONS, is_cooperative)
        if not is_cooperative or sum(map(len, owned.values())) == NUMBER:
            return owned
    raise AssertionError("a cooperative assignor gives each partition an owner within a round per partition")


def _read(lags: dict[TopicPartition, int], rates: Sequence[int], owned: Assigned, paused: Collection[TopicPartition]) -> int:
    """Let one second pass: each partition gets new records, then the members in `owned` read, except from `paused`.

    `rates` are the new records per partition; `lags`, the unread records, changes. Return the greatest lag.
    """
    for tp, rate in zip(PARTITIONS, rates, strict=True):
        lags[tp] += rate
    for tps in owned.values():
        # A member reads the greatest lag first, and nothing from partitions in `paused`.
        left = READ
        for tp in sorted([tp for tp in tps if tp not in paused], key=lags.__getitem__, reverse=True):
            taken = min(left, lags[tp])
            lags[tp] -= taken
            left -= taken
    return max(lags.values())
