"""A random run as a program, so that it can be run under several hash seeds.

Usage: `python -m tests.core.one_run SEED` writes the journal to standard output.
"""

import sys

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from tests.core.support import ALL_FAULTS, TOPICS, journal_bytes, settle, walk

if __name__ == "__main__":
    world = World(Settings(topics=TOPICS, faults=ALL_FAULTS, seed=int(sys.argv[1])))
    for broker in world.settings.brokers:
        settle(world, ("start", broker))
    for _ in walk(world, int(sys.argv[1]), 300):
        pass
    sys.stdout.buffer.write(journal_bytes(world.journal.records))
