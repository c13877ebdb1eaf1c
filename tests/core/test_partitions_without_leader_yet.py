"""An election asked for a partition that has never had a leader: its topic was created while its replicas were dead.

The other party: recordings of Kafka 1.1.1 and 2.8.2 (tests/golden/recordings/more/*/never-led*.json).
"""

from __future__ import annotations

import pytest

from kcontrol.cluster.world import World
from kcontrol.core.model import TopicPartition
from kcontrol.core.releases import PLAYABLE_RELEASES
from kcontrol.core.znodes import CONTROLLER, PREFERRED_REPLICA_ELECTION, encode_partition_list
from tests.core.support import T0, alone, cluster, of_kind, settle, stored, until

V0 = TopicPartition("v", 0)


def asked(release: str) -> tuple[World, int]:
    """Return a cluster in which an election was asked for of t-0, which broker 2 does not lead, and v-0, and when that was."""
    world = cluster({"t": ((2, 1),)}, release=release)
    settle(world, ("kill", 3))
    settle(world, ("create_topic", "v", ((3,),)))
    for act in ("terminate", "start"):
        settle(world, (act, 2))
    before = len(world.journal.records)
    settle(world, ("create", PREFERRED_REPLICA_ELECTION, encode_partition_list((T0, V0)).decode()))
    return world, before


@pytest.mark.parametrize("release", PLAYABLE_RELEASES)
def test_an_election_of_a_partition_never_led_fails_and_its_znode_stays(release: str) -> None:
    """Since 2.2 the other partitions of the request keep their leaders, before that they are elected; the znode stays."""
    # Source: KafkaController.processReplicaLeaderElection (2.2), removePartitionsFromPreferredReplicaElection (0.8 to 2.1).
    world, before = asked(release)
    is_old = release.startswith(("0", "1")) or release in ("2.0", "2.1")
    assert (stored(world)["t-0"][0], PREFERRED_REPLICA_ELECTION in world.zk.tree()) == (2 if is_old else 1, True)
    assert [r.fields["error"] for r in of_kind(world, "handler_error", before)] == ["KeyError"]


@pytest.mark.parametrize("release", ["1.1", "2.4", "2.8", "3.9"])
def test_every_failover_fails_until_a_replica_of_the_partition_lives(release: str) -> None:
    """The znode makes each failover fail after it has created `/controller`, until broker 3, which has the partition, is back."""
    # In 1.1 failovers also end when no broker is left that watches `/controller`: recordings have 2, 54 and 294, and here are 2.
    # Source: KafkaController.fetchPendingPreferredReplicaElections, triggerControllerMove (1.1 to 3.9).
    world, _ = asked(release)
    before = len(world.journal.records)
    world.step(("delete", CONTROLLER))
    expected = 2 if release == "1.1" else 6
    until(world, lambda w: len(of_kind(w, "handler_error", before)) == expected)
    assert {r.fields["error"] for r in of_kind(world, "handler_error", before)} == {"KeyError"}
    assert (CONTROLLER in world.zk.tree(), PREFERRED_REPLICA_ELECTION in world.zk.tree()) == (False, True)
    if release == "1.1":
        world.run()
        assert len(of_kind(world, "handler_error", before)) == 2
    world.step(("start", 3))
    alone(world, 3, lambda w: "/brokers/ids/3" in w.zk.tree())
    world.run()
    assert (CONTROLLER in world.zk.tree(), PREFERRED_REPLICA_ELECTION in world.zk.tree()) == (True, False)
    assert {name: leader for name, (leader, _) in stored(world).items()} == {"t-0": 2, "v-0": 3}
