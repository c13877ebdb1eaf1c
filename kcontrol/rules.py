"""The controller's rules, without a cluster: `from kcontrol import rules`.

rules.table(*names)         the value of each named rule, by release
rules.elections()           the kinds of elections: occasion, leader, order of candidates
rules.source(name)          the source code of "leader_election.offline", "group.rebalance.on_complete_join" ...
rules.trials({name: rule})  election rules, compared in random failures
rules.trials(assignors={})  assignors of consumer groups, compared in random joins, failures and lags
rules.decode(record, data)  the bytes of a record of the offsets topic or of the consumer protocol
rules.always(condition)     a condition that lab.search tries to break; also never, comes_to_rest_with
rules.museum()              published bugs of Kafka, each with the rule that restores it
rules.hunt(rule, fixed)     the search for one of these bugs
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kcontrol.core.controller_rules import Rules
from kcontrol.core.errors import UserError
from kcontrol.core.releases import sort_key
from kcontrol.core.rule_fields import declared
from kcontrol.lab import analysis
from kcontrol.lab.groups import assignor_trials, decoded_bytes
from kcontrol.lab.searches.searches import Found, NotFound, searched
from kcontrol.lab.support import arguments, calls, own_assignor
from kcontrol.lab.support.late import frames, pd
from kcontrol.lab.support.output import Shown
from kcontrol.lab.tables import elections as election_tables
from kcontrol.lab.tables import journal_tables
from kcontrol.lab.tables import rule_trials as series
from kcontrol.search.museum import BY_RULE, MUSEUM
from kcontrol.search.promises import always, comes_to_rest_with, never
from kcontrol.views import text

__all__ = [
    "always", "comes_to_rest_with", "decode", "elections", "hunt", "museum", "never", "source", "table", "trials",
]  # fmt: skip
# Of `museum()`: `switch` is rule=value, which restores the bug; `releases` has the first release with the bug, `fix` is the
# release of the fix, `invariant` is what the bug breaks, and `bug` a sentence.
COLUMNS = ("switch", "ticket", "releases", "fix", "invariant", "bug")


def __dir__() -> Any:
    return __all__


def table(*names: str) -> pd.DataFrame:
    """Return one row per rule in `names`, such as "fenced_writes", and one column per release that changed these rules.

    A value is the rule's new value in this release, "" if the release does not change the rule. Raises UserError for an unknown
    name.
    """
    every = declared(Rules)
    if not names or not every.keys() >= set(names):
        wrong = next((repr(name) for name in names if name not in every), "nothing")
        raise UserError(f"There is no rule {wrong}; the rules are {text.listed(sorted(every), 100)}.")
    chosen = {name: every[name].rows for name in names}
    releases = sorted({since for rows in chosen.values() for since, _ in rows}, key=sort_key)
    rows = ({"rule": name, **{since: _said(value) for since, value in found}} for name, found in chosen.items())
    return frames.Wide(journal_tables.table(rows, dict.fromkeys(releases, "string"), "rule").fillna(""))


def _said(value: Any) -> str:
    """Such as "yes" or "no" for a bool, the elements of a tuple or "none", else the `str`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return text.listed(value, 9) or "none" if isinstance(value, tuple) else str(value)


def elections() -> pd.DataFrame:
    """Return one row per kind of election, such as "offline".

      held_when  the condition for the election, such as "its leader is not online"
      leader     the rule that chooses the leader
      order      the order of the candidates by release: that of the ISR, or that of the assigned replicas (AR)
      sent_to    the brokers that receive LeaderAndIsr after the election

    An empty `order` means that the order is equal in all releases.
    """
    return election_tables.elections()


def source(name: str) -> Shown:
    """Return the source code of a function of the controller or of the group coordinator, for display in a notebook.

    Examples of `name`: "leader_election.offline", "group.rebalance.on_complete_join". Raises UserError, with a list, for an
    unknown name.
    """
    return analysis.source(name)


def trials(
    rules: Mapping[str, series.Rule] | None = None,
    runs: int = 100,
    seed: int = 1,
    *,
    assignors: Mapping[str, own_assignor.Assignor | None] | None = None,
) -> pd.DataFrame:
    """Return one row per rule for the offline election, with its effects in random failures of brokers.

    `rules` maps the name of each row to a function of (assignment, isr, live) that returns the new leader's id or None, or to a
    function of an ElectionInput. In place of a function, None stands for Kafka's rule. Each rule is tried in `runs` simulated
    clusters; the kills and starts of brokers in them are drawn with `seed`, and are equal for all rules. The columns are sums
    over these clusters: elections; unclean, the unclean elections; offline_windows, the times in which a partition has no
    running leader; offline_ms, the length of these times in ms.

    With `assignors` instead of `rules` there is one row per assignor, with its effects in `runs` random series of joins, failures
    and lags: rebalances; moved, the partitions that another living member had before; uneven, the assignments in which a member
    has at least two partitions more than another; greatest_lag, the most unread records of a partition (a mean over the series).
    `assignors` maps the name of each row to a function of (partitions, members) or (partitions, members, lags) that returns a
    dict from each member to a list of partitions. In place of a function, None stands for Kafka's assignor with the name of the
    row, such as "range". Raises UserError unless exactly one of `rules` and `assignors` is given.
    """
    if (rules is None) == (assignors is None) or not isinstance(rules if assignors is None else assignors, Mapping):
        raise UserError('Compare either rules or assignors, as in rules.trials(assignors={"range": None, "mine": mine}).')
    if not (assignors if rules is None else rules):
        raise UserError('There is nothing to compare: name at least one rule or assignor, as in assignors={"range": None}.')
    return series.trials(rules, runs, seed) if rules is not None else assignor_trials.trials(assignors or {}, runs, seed)


def decode(record: str, data: object) -> pd.DataFrame:
    """Return the fields of a record, one row each, with their bytes and values; `data` are bytes or hexadecimal text.

    Examples of `record`: "subscription", "offset_key", "group_value". Raises UserError, with a list of these names, for another
    name, and for bytes that are no such record.
    """
    return decoded_bytes.decode(record, data)


def museum() -> pd.DataFrame:
    """Return one row per published bug of Kafka: the rule that switches it on, its ticket, releases, fix and invariant.

    The column `switch` has the value for a lab with the bug, as in Lab(rules={"fenced_writes": False}).
    """
    rows = [(f"{r.rule}={r.restored}", r.ticket, f"{r.releases[0]} on", r.releases[1], r.invariant, r.bug) for r in MUSEUM]
    return pd.DataFrame(rows, columns=list(COLUMNS), index=pd.Index([row.rule for row in MUSEUM], name="rule"), dtype="string")


def hunt(rule: str, fixed: bool = False, *, spark: Any = None) -> Found | NotFound:
    """Search a small 2.8 cluster for a run that shows the bug of `rule`, a row of `museum()`; return Found or NotFound.

    With `fixed`, the cluster is without the bug; with `spark`, such as lab.spark(), Spark's executors search. Raises UserError
    for an unknown rule.
    """
    from kcontrol.lab.lab import Lab

    row = BY_RULE[arguments.one_of(rule, BY_RULE, "bug of")]
    world = row.world(restored=not fixed)
    return searched(world, row.promise, row.budget, lambda: Lab._of(world.fork(), row.ticket), spark)


calls.check_all(globals(), __all__)
