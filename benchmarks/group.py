"""Timers of a coordinator, the time from the first JoinGroup to Stable, and the offsets that a load reads per second.

Run: `python -m benchmarks.group` (add `--large` for a group of 10,000 members).
"""

from __future__ import annotations

import sys
import time

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.core.effects import LogBatch
from kcontrol.core.model import TopicPartition
from kcontrol.group.group_loading import Loaded, read_batch
from kcontrol.group.model import OffsetAndMetadata
from kcontrol.group.offsets_topic_records import offset_key, offset_value
from kcontrol.group.timing_wheel import Timer

ARMED, RESTARTED, RECORDS, SESSION_MS = 1_000_000, 200_000, 1_000_000, 10_000


def timers() -> str:
    """Return how many heartbeats per second restart their timer while a million are armed."""
    timer = Timer()
    for number in range(ARMED):
        timer.add(str(number), SESSION_MS + number % 3_000)
    begin = time.perf_counter()
    for number in range(RESTARTED):
        timer.cancel(str(number))
        timer.add(str(number), SESSION_MS + 3_000 + number % 3_000)
    seconds = time.perf_counter() - begin
    return f"{2 * RESTARTED / seconds:,.0f} operations per second (cancel and add) with {len(timer):,} armed"


def joined(members: int) -> float:
    """Return the processor's seconds from the first JoinGroup to the last answered SyncGroup of a group of 0.9."""
    names = [f"c{number:05}" for number in range(members)]
    world = World(Settings("0.9", (1,), consumers=dict.fromkeys(names, "g")))
    world.step(("start", 1))
    world.run()
    for topic, partitions in (("__consumer_offsets", 1), ("t", 10)):
        world.step(("create_topic", topic, ((1,),) * partitions))
        world.run()
    begin = time.process_time()
    for request in ("join", "join", "sync"):
        for name in names if request == "join" else reversed(names):
            if world.consumers[name].asked is None:
                world.step(("consumer", name, request))
                world.run()
    assert world.processes[1].driver.group is not None
    group = world.processes[1].driver.group.groups["g"]
    assert str(group.state) == "Stable" and len(group.members) == members, (group.state, len(group.members))
    return time.process_time() - begin


def loaded() -> str:
    """Return how many offset records per second a load reads: 1,000 groups with 10 partitions each, 100 commits of each."""
    value, keys = offset_value(OffsetAndMetadata(7, "", 1_000), 3), list[bytes]()
    for group in range(1_000):
        keys += [offset_key(f"group-{group}", TopicPartition("t", partition)) for partition in range(10)]
    batches = [LogBatch(base, tuple((key, value) for key in keys)) for base in range(0, RECORDS, len(keys))]
    begin, found = time.perf_counter(), Loaded()
    for batch in batches:
        read_batch(found, batch)
    seconds = time.perf_counter() - begin
    return f"{RECORDS / seconds:,.0f} records per second from {RECORDS:,} records"


def main() -> None:
    """Print the three measurements."""
    print("timers:", timers(), flush=True)
    for members in (10, 100, 1_000, *((10_000,) if "--large" in sys.argv else ())):
        seconds = joined(members)
        print(f"join to stable, {members:,} members: {seconds:.2f} s, {1_000 * seconds / members:.2f} ms a member", flush=True)
    print("offsets:", loaded(), flush=True)


if __name__ == "__main__":
    main()
