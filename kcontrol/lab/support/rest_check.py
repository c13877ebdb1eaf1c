"""Ends a run in which consumers act by themselves if a group does not stop rebalancing.

Such a group begins a rebalance again and again: for example, its members join, and each write of the assignment fails.
"""

from collections import Counter
from collections.abc import Sequence

from kcontrol.cluster.consumer_clients import config, consumer_config
from kcontrol.cluster.consumer_configs import SESSION_MS
from kcontrol.cluster.consumer_state import STABLE
from kcontrol.cluster.world import World
from kcontrol.core.errors import UserError, listed
from kcontrol.journal.journal import Record

# A member that polls too late leaves after a rebalance timeout, a rebalance waits for this time at most, and a session ends:
# three of the longest times are enough for each group that comes to rest.
TIMES = 3
REBALANCES, PER_CONSUMER = 100, 10


class RestCheck:
    """A check for runs in which consumers act by themselves: it ends the run if a group does not stop rebalancing.

    The caller passes the journal records of each step to `check`.
    """

    def __init__(self, world: World) -> None:
        self._world, self._begun_ms = world, world.now_ms
        thaws = [found.thaws_at_ms for found in world.consumers.values() if found.thaws_at_ms is not None]
        self._ends_ms = max([world.now_ms, *thaws]) + TIMES * _longest_ms(world)
        self._most = REBALANCES + PER_CONSUMER * len(world.consumers)
        self._rebalances: Counter[str] = Counter()

    def check(self, step: Sequence[Record]) -> None:
        """Count the rebalances that begin in the journal records of a step.

        Raises UserError if a group has more rebalances than 100 plus 10 per consumer, and if the run lasts longer than three
        times the longest timeout.
        """
        begun = [r.fields["group_id"] for r in step if r.kind == "group" and r.fields["to"] == "PreparingRebalance"]
        self._rebalances.update(begun)
        if self._world.now_ms > self._ends_ms or any(self._rebalances[group] > self._most for group in begun):
            raise UserError(self._sentence())

    def _sentence(self) -> str:
        seconds, consumers = (self._world.now_ms - self._begun_ms) // 1000, self._world.consumers.values()
        moving = {found.group for found in consumers if found.state != STABLE or found.error not in ("", "NONE")}
        groups = [group for group, many in self._rebalances.most_common() if many > 1] or sorted(moving)
        named = f"Group {listed(groups[:1])} has" if len(groups) == 1 else f"Groups {listed(groups, 9)} have"
        count = f"{sum(self._rebalances.values())} rebalances have begun"
        return (
            f"{named} not come to rest in {seconds:,} s of virtual time, in which {count}: look at lab.tables.rebalances(), or "
            'run for a duration, such as lab.run("60 s", alive=True).'
        )


def _longest_ms(world: World) -> int:
    """Return the longest timeout in ms after which a coordinator or consumer can change a group, such as a session timeout."""
    settings = [consumer_config(world.settings, name) for name in world.consumers]
    coordinators = config(world.settings)
    of_consumers = [time for each in settings for time in (each.rebalance_timeout_ms, int(each[SESSION_MS]))]
    return max([coordinators.initial_delay_ms, coordinators.commit_timeout_ms, *of_consumers])
