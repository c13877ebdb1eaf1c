"""Timers of a coordinator, the time from the first JoinGroup to Stable, and the offsets that a load reads per second.

Usage: python -m benchmarks.group

Seconds are processor time. `benchmarks.compare` compares the figures with another state.
"""

from __future__ import annotations

import gc
import statistics
import time

from kcontrol.cluster.actions import ACTIONS
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.core.effects import LogBatch
from kcontrol.core.model import TopicPartition
from kcontrol.group.group_loading import Loaded, read_batch
from kcontrol.group.model import OffsetAndMetadata
from kcontrol.group.offsets_topic_records import offset_key, offset_value
from kcontrol.group.rebalance import join_timer
from kcontrol.group.timing_wheel import Timer

ARMED, RESTARTED, RECORDS, SESSION_MS = 1_000_000, 200_000, 200_000, 10_000
FEW, MANY, GROUPS = 10, 2_000, 20


def timers() -> float:
    """Return how often per second heartbeats cancel or add their timer while a million are armed."""
    timer = Timer()
    for number in range(ARMED):
        timer.add(str(number), SESSION_MS + number % 3_000)
    begin = time.process_time()
    for number in range(RESTARTED):
        timer.cancel(str(number))
        timer.add(str(number), SESSION_MS + 3_000 + number % 3_000)
    return 2 * RESTARTED / (time.process_time() - begin)


def joined(members: int, release: str) -> float:
    """Return the seconds from the first JoinGroup to the last answered SyncGroup of a group."""
    gc.collect()
    names = [f"c{number:05}" for number in range(members)]
    world = World(Settings(release, (1,), consumers=dict.fromkeys(names, "g")))
    world.step(("start", 1))
    world.run()
    for topic, partitions in (("__consumer_offsets", 1), ("t", 10)):
        world.step(("create_topic", topic, ((1,),) * partitions))
        world.run()
    # Before the verbs were made one, the action was `fire`, and one action had the names of a consumer's requests.
    fire = "fire_timer" if "fire_timer" in ACTIONS else "fire"
    begin = time.process_time()
    for request in ("join", "join", "sync"):
        # Since 0.11 the first join phase ends only after a wait.
        while request == "sync" and join_timer("g") in world.processes[1].driver.timers:
            world.step((fire, 1, join_timer("g")))
            world.run()
        for name in names if request == "join" else reversed(names):
            if world.consumers[name].asked is None:
                world.step((request, name) if request in ACTIONS else ("consumer", name, request))
                world.run()
    assert world.processes[1].driver.group is not None
    group = world.processes[1].driver.group.groups["g"]
    assert str(group.state) == "Stable" and len(group.members) == members, (group.state, len(group.members))
    return time.process_time() - begin


def members(release: str) -> dict[str, float]:
    """Groups of 10 members before and after one of 2,000; the first group of a process is not counted."""
    joined(FEW, release)
    few = [joined(FEW, release) / FEW for _ in range(GROUPS)]
    many = joined(MANY, release) / MANY
    few += [joined(FEW, release) / FEW for _ in range(GROUPS)]
    rates = {f"members per second, {FEW} of {release}": 1 / statistics.mean(few)}
    rates[f"members per second, {MANY:,} of {release}"] = 1 / many
    return rates | {f"a member of {MANY:,} of {release} / one of {FEW}": many / statistics.mean(few)}


def loaded() -> float:
    """Return how many offset records per second a load reads: 1,000 groups with 10 partitions each, 20 commits of each."""
    value, keys = offset_value(OffsetAndMetadata(7, "", 1_000), 3), list[bytes]()
    for group in range(1_000):
        keys += [offset_key(f"group-{group}", TopicPartition("t", partition)) for partition in range(10)]
    batches = [LogBatch(base, tuple((key, value) for key in keys)) for base in range(0, RECORDS, len(keys))]
    begin, found = time.process_time(), Loaded()
    for batch in batches:
        read_batch(found, batch)
    return RECORDS / (time.process_time() - begin)


PARTS = (
    lambda: {"timer operations per second": timers()},
    lambda: members("0.9"),
    lambda: members("2.8"),
    lambda: {"offsets loaded per second": loaded()},
)


if __name__ == "__main__":
    for part in PARTS:
        for name, rate in part().items():
            print(f"{name}: {rate:,.2f}")
