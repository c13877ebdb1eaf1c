"""The museum, a list of published bugs of Kafka that a lab's rule can restore, as a table; and the search for one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcontrol.lab.searches.searches import Found, NotFound, searched
from kcontrol.lab.support import arguments
from kcontrol.lab.support.late import pd
from kcontrol.search.museum import BY_RULE, MUSEUM

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# `switch` is rule=value, which restores the bug; `releases` has the first release with the bug, `fix` is the release of the
# fix, `invariant` is what the bug breaks, and `bug` a sentence.
COLUMNS = ("switch", "ticket", "releases", "fix", "invariant", "bug")


def museum() -> pd.DataFrame:
    """Return one row per published bug of Kafka: its ticket, releases, fix, and the invariant that the bug breaks.

    The index is the rule, an entry of Lab(rules=...), that can restore the bug.
    """
    rows = [(f"{r.rule}={r.restored}", r.ticket, f"{r.releases[0]} on", r.releases[1], r.invariant, r.bug) for r in MUSEUM]
    return pd.DataFrame(rows, columns=list(COLUMNS), index=pd.Index([row.rule for row in MUSEUM], name="rule"), dtype="string")


def hunt(rule: str, *, fixed: bool = False, spark: SparkSession | None = None) -> Found | NotFound:
    """Search Kafka 2.8 with the published bug that `rule` restores, such as "fenced_writes", for a run that breaks an invariant.

    `fixed` means without the bug. With `spark`, Spark's executors search. Raises UserError for an unknown rule.
    """
    from kcontrol.lab.lab import Lab

    row = BY_RULE[arguments.one_of(rule, BY_RULE, "bug of")]
    world = row.world(restored=not fixed)
    return searched(world, row.promise, row.budget, lambda: Lab._of(world.fork(), row.ticket), spark)
