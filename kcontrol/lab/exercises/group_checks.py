"""Prepares the checks of exercises about a rule of the group coordinator, such as `group.try_complete_join`.

The learner's function and Kafka's rule are called while consumers send requests in a random order.
"""

import copy
import random
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from kcontrol.cluster import consumer_clients
from kcontrol.cluster.world import World
from kcontrol.group.events import PartitionElected, PartitionResigned
from kcontrol.group.group_strategies import EXPIRED, ExpiringGroup, ExpiringOffset
from kcontrol.group.offset_expiration import EXPIRY_TIMER
from kcontrol.lab.exercises.checks import Call, Checker, Entry, capitalized, comparable, comparing
from kcontrol.lab.groups import plays
from kcontrol.lab.support import replacements, requested_settings

GROUP, CONSUMERS, TOPICS = "billing", ("anna", "bert", "cleo", "dora"), {"t": 3, "__consumer_offsets": 1}
REQUESTS = {"join": "JoinGroup", "sync": "SyncGroup", "heartbeat": "Heartbeat", "leave": "LeaveGroup"}
OTHER_REQUESTS, TIMERS = 0.25, 0.1
"""How often an action is any possible request, or a timer of the group, and not the next request of a consumer's client."""
MOVES = {"join": 0.05, "sync": 0.5}
"""How often the partition of the group moves after an action, by the sort of the request that is parked."""
COMMITS, EXPIRES = 0.2, 0.2
"""How often an action is a commit, or the search for expired offsets after some time, if a schedule has them."""
OFFSET, HOURS = "t-0", (1, 23, 24, 24 * 6, 24 * 7)
RECORDS: dict[str, tuple[Any, ...]] = {EXPIRED: (ExpiringOffset, ExpiringGroup)}
"""The types of the arguments of a rule that are tables in exercises.toml; a field that a table lacks is None."""


def group_rule(entry: Entry) -> Checker:
    """A check that the learner's function always returns the result of Kafka's rule of the group coordinator."""
    # Both are called with the arguments of each `case` in `entry`, and of each call in random runs in which consumers send
    # requests: the order of requests and timers depends on the seed alone, and the coordinator uses the result of Kafka's rule.
    calls: dict[str, Call] = {}
    for case in entry.get("case", ()):
        given = _given(entry, case)
        # In sentences the `title` stands for the arguments.
        _note(calls, capitalized(case.get("title") or _shown(given)), given, replacements.own_function(entry["replaces"]))
    # A schedule has a `release`, the `count` of its random runs and the number of `actions` in each run.
    for schedule in entry["schedules"]:
        for number in range(schedule["count"]):
            _play(entry, schedule, number, calls)
    return comparing(list(calls.values()))


def _play(entry: Entry, schedule: Mapping[str, Any], number: int, calls: dict[str, Call]) -> None:
    """Play a random run with the seed `number`, and add each call of Kafka's rule with new arguments to `calls`."""
    ours, place = replacements.own_function(entry["replaces"]), {"when": "the group is new"}

    def noting(*question: Any) -> Any:
        where = f"Kafka {schedule['release']}, schedule {number}: {place['when']}; the arguments are {_shown(question)}"
        return _note(calls, where, question, ours)

    world = _opened(schedule["release"], {entry["replaces"]: noting})
    _run(world, random.Random(number), schedule, place)


def _note(calls: dict[str, Call], where: str, question: tuple[Any, ...], ours: Any) -> Any:
    right = ours(*question)
    if (key := repr(question)) not in calls:
        calls[key] = Call(where, partial(copy.deepcopy, copy.deepcopy(question)), comparable(right))
    return right


def _given(entry: Entry, case: Mapping[str, Any]) -> tuple[Any, ...]:
    given = list(case["args"])
    for place, record in enumerate(RECORDS.get(entry["replaces"], ())):
        given[place] = record(**(dict.fromkeys(record._fields) | given[place]))
    return tuple(given)


def _shown(question: tuple[Any, ...]) -> str:
    """Return `question`, the arguments of one call, as text such as "'anna-1f3c', 2", with each UUID cut to 4 characters."""
    return re.sub(r"(?<=-[0-9a-f]{4})[0-9a-f]{28}\b", "", ", ".join(map(repr, question)))


def _opened(release: str, strategies: Mapping[str, Any]) -> World:
    """A simulated cluster whose only broker coordinates the group "billing", with the topics t and `__consumer_offsets`."""
    settings = requested_settings.settings(
        1, release, 7, {}, requested_settings.Changed(strategies=strategies), consumers=dict.fromkeys(CONSUMERS, GROUP)
    )
    world = World(settings)
    world.step(("start", 1))
    world.run()
    for topic, partitions in TOPICS.items():
        world.step(("create_topic", topic, ((1,),) * partitions))
        world.run()
    return world


def _run(world: World, chance: random.Random, schedule: Mapping[str, Any], place: dict[str, str]) -> None:
    """Perform `schedule["actions"]` random actions, drawn by `chance`: consumers send requests, and timers of the group fire.

    `place["when"]` is set to a clause about the latest request or timer, such as "the timer ... fires".
    """
    for _ in range(schedule["actions"]):
        timers = sorted(name for name in world.processes[1].driver.timers if f" {GROUP}" in name)
        name, drawn = chance.choice(CONSUMERS), chance.random()
        me = world.consumers[name]
        # With `expires` members commit an offset, hours pass, and the coordinator searches for expired offsets.
        if schedule.get("expires") and chance.random() < EXPIRES:
            place["when"] = "the coordinator searches for expired offsets"
            world.step(("wait", chance.choice(HOURS) * 3_600_000))
            world.step(("fire_timer", 1, EXPIRY_TIMER))
        elif schedule.get("expires") and not me.asked and chance.random() < COMMITS:
            world.step(("commit", name, OFFSET, world.now_ms))
        elif timers and (me.asked or drawn < TIMERS):
            timer = chance.choice(timers)
            place["when"] = f"the timer {_shown((timer,))} fires"
            world.step(("fire_timer", 1, timer))
        elif not me.asked:
            usual = plays.next_request(me._asdict())
            request = chance.choice(consumer_clients.REQUESTED) if drawn > 1 - OTHER_REQUESTS else usual
            place["when"] = f"{name} sends {REQUESTS[request]}"
            world.step((request, name))
        world.run()
        # With `moves` the broker sometimes loses and regains the leadership of the partition that has the group.
        parked = {key.partition(" ")[0] for key in world.processes[1].driver.parked.values()} if schedule.get("moves") else ()
        if parked and chance.random() < max(MOVES.get(sort, 0) for sort in parked):
            _move(world, place)


def _move(world: World, place: dict[str, str]) -> None:
    """Let the coordinator lose and regain the leadership of the group's partition, and say so in `place`."""
    place["when"] += "; then the leader of the partition moves"
    # The coordinator unloads the partition and loads it again.
    for event in (PartitionResigned(0), PartitionElected(0)):
        world.processes[1].driver.enqueue(event, None)
        world.run()
