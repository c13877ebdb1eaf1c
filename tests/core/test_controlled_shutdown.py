"""What a broker is answered that asks to shut down."""

from __future__ import annotations

import pytest

from tests.core.support import cluster, of_kind

RELEASES = ("0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.2", "0.11.0", "1.0", "1.1", "2.4", "2.8", "3.9")


@pytest.mark.parametrize("release", RELEASES)
def test_a_partition_without_another_replica_keeps_no_broker(release: str) -> None:
    """A broker that alone has a partition is answered with no partition, and stops.

    Source: KafkaController.shutdownBroker, replicatedPartitionsBrokerLeads, `partitionReplicaAssignment(tp).size > 1` (0.8.1,
    1.0); doControlledShutdown (2.8).
    """
    world = cluster({"t": ((3,),)}, release=release)
    world.step(("term", 3))
    world.run()
    [answer] = [r.fields["body"] for r in of_kind(world, "respond") if r.fields["correlation_id"].endswith("ControlledShutdown")]
    assert answer == {"error": "NONE", "partitions": {}}
    assert 3 not in world.processes
