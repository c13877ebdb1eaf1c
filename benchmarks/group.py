"""Timers of a coordinator, the time from the first JoinGroup to Stable, and the offsets that a load reads per second.

Usage: python -m benchmarks.group

Seconds are processor time. `benchmarks.compare` compares the figures with another state.
"""

from __future__ import annotations

import time

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.core.effects import LogBatch
from kcontrol.core.model import TopicPartition
from kcontrol.group.group_loading import Loaded, read_batch
from kcontrol.group.model import OffsetAndMetadata
from kcontrol.group.offsets_topic_records import offset_key, offset_value
from kcontrol.group.rebalance import join_timer
from kcontrol.group.timing_wheel import Timer

ARMED, RESTARTED, RECORDS, SESSION_MS = 1_000_000, 200_000, 1_000_000, 10_000


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
    """Return the members per second from the first JoinGroup to the last answered SyncGroup of a group."""
    names = [f"c{number:05}" for number in range(members)]
    world = World(Settings(release, (1,), consumers=dict.fromkeys(names, "g")))
    world.step(("start", 1))
    world.run()
    for topic, partitions in (("__consumer_offsets", 1), ("t", 10)):
        world.step(("create_topic", topic, ((1,),) * partitions))
        world.run()
    begin = time.process_time()
    for request in ("join", "join", "sync"):
        # Since 0.11 the first join phase ends only after a wait.
        while request == "sync" and join_timer("g") in world.processes[1].driver.timers:
            world.step(("fire_timer", 1, join_timer("g")))
            world.run()
        for name in names if request == "join" else reversed(names):
            if world.consumers[name].asked is None:
                world.step((request, name))
                world.run()
    assert world.processes[1].driver.group is not None
    group = world.processes[1].driver.group.groups["g"]
    assert str(group.state) == "Stable" and len(group.members) == members, (group.state, len(group.members))
    return members / (time.process_time() - begin)


def loaded() -> float:
    """Return how many offset records per second a load reads: 1,000 groups with 10 partitions each, 100 commits of each."""
    value, keys = offset_value(OffsetAndMetadata(7, "", 1_000), 3), list[bytes]()
    for group in range(1_000):
        keys += [offset_key(f"group-{group}", TopicPartition("t", partition)) for partition in range(10)]
    batches = [LogBatch(base, tuple((key, value) for key in keys)) for base in range(0, RECORDS, len(keys))]
    begin, found = time.process_time(), Loaded()
    for batch in batches:
        read_batch(found, batch)
    return RECORDS / (time.process_time() - begin)


def figures() -> dict[str, float]:
    """Return rates per second of the processor by name."""
    sizes = [(release, members) for release in ("0.9", "2.8") for members in (10, 100, 2_000)]
    joins = {f"members per second, {n:,} members of {release}": joined(n, release) for release, n in sizes}
    return {"timer operations per second": timers(), **joins, "offsets loaded per second": loaded()}


if __name__ == "__main__":
    for name, rate in figures().items():
        print(f"{name}: {rate:,.0f}")
