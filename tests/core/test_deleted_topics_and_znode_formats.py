"""The controller's memory of deleted topics, and the old formats of znodes that it reads."""

from __future__ import annotations

import pytest

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.core.kafka_json import MalformedZnode
from kcontrol.core.znodes import CONTROLLER, PREFERRED_REPLICA_ELECTION, broker_path, decode_controller, encode_partition_list
from kcontrol.group.assignors import read_sticky_user_data, sticky_user_data
from tests.core.support import T0, cluster, of_kind, settle, states, stored

LISTENERS = ("0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.2")


def test_a_controller_is_named_in_two_forms() -> None:
    """`/controller` holds JSON or, up to 1.0, an integer alone; other data is refused."""
    # Source: KafkaController.parseControllerId (0.8.1 to 1.0).
    assert [decode_controller(data) for data in (b'{"version":1,"brokerid":7,"timestamp":"1"}', b"7", b"+7")] == [7, 7, 7]
    for neither in (b"seven", b"\xff", b"", b"7.0"):
        with pytest.raises(MalformedZnode):
            decode_controller(neither)


@pytest.mark.parametrize("release", ["0.8.0", "0.9.0", "1.0", "1.1", "2.8"])
def test_an_integer_in_the_controllers_znode_names_a_broker_up_to_1_0(release: str) -> None:
    """A broker that finds `/controller` with the text 3 takes broker 3 for the controller; since 1.1 its election fails."""
    # Source: KafkaController.parseControllerId (0.8.0 to 1.0), ControllerZNode.decode (1.1).
    world = World(Settings(brokers=(1,), release=release))
    settle(world, ("create", CONTROLLER, "3"), ("start", 1))
    reads_it = release in ("0.8.0", "0.9.0", "1.0")
    assert world.processes[1].driver.controller.active_controller_id == (3 if reads_it else -1)
    assert [r.fields["error"] for r in of_kind(world, "handler_error")] == ([] if reads_it else ["MalformedZnode"])


def test_what_a_sticky_member_had_is_read_in_both_versions() -> None:
    """With a generation it is version 1, without one version 0, and the fields come back. Source: StickyAssignor.java (2.8)."""
    before = [{"topic": "t", "partitions": [1, 2]}]
    assert read_sticky_user_data(sticky_user_data(before, 4)) == {"previous_assignment": before, "generation": 4}
    assert read_sticky_user_data(sticky_user_data(before, None)) == {"previous_assignment": before}


@pytest.mark.parametrize("release", [*LISTENERS, "0.11.0", "1.0", "1.1", "2.8", "3.9"])
def test_a_topic_that_is_removed_from_outside_leaves_the_memory(release: str) -> None:
    """A topic whose znode was deleted from outside leaves the controller's memory, and a new topic of that name enters it."""
    # Source: TopicChangeListener of PartitionStateMachine, setAllTopics (0.8.1); KafkaController.TopicChange (1.0).
    world = cluster({"t": ((1, 2),)}, release=release)
    for path in sorted((p for p in world.zk.tree() if p.startswith("/brokers/topics/t")), reverse=True):
        world.step(("delete", path))
    world.run()
    assert "t" not in world.processes[1].driver.controller.all_topics


@pytest.mark.parametrize("release", ["1.0", "1.1", "2.4", "2.8", "3.9"])
def test_a_failed_directory_is_forgotten_with_its_broker(release: str) -> None:
    """A broker that ends and starts again has its directories back, as far as the controller knows."""
    # Source: KafkaController.onBrokerFailure, replicasOnOfflineDirs.remove (1.0, 2.8).
    world = cluster({"t": ((1, 2), (2, 3))}, release=release)
    settle(world, ("fail_log_dir", 2, "t-1"))
    known = [dict(world.processes[1].driver.controller.offline_dirs)]
    settle(world, ("kill", 2))
    known.append(dict(world.processes[1].driver.controller.offline_dirs))
    assert (bool(known[0]), known[1]) == (True, {})


@pytest.mark.parametrize("release", LISTENERS)
def test_a_failover_elects_only_who_does_not_lead_yet(release: str) -> None:
    """Of a preferred election that waits for the next controller, partitions that their first replica leads are left out."""
    # Source: KafkaController.initializeAndMaybeTriggerPreferredReplicaElection (0.8.1).
    world = cluster({"t": ((2, 3),)}, release=release)
    world.step(("freeze", 1))
    world.step(("create", PREFERRED_REPLICA_ELECTION, encode_partition_list((T0,)).decode()))
    before = len(world.journal.records)
    settle(world, ("kill", 1))
    wanted = [r for r in of_kind(world, "update", before) if r.fields["field"] == "preferred_elections" and r.fields["put"]]
    assert (wanted, PREFERRED_REPLICA_ELECTION in world.zk.tree()) == ([], False)


@pytest.mark.parametrize("release", [*LISTENERS, "0.11.0", "1.0", "1.1", "2.4", "2.8", "3.9"])
def test_a_malformed_preferred_election_elects_no_partition(release: str) -> None:
    """Broker 3 leads t-0, which prefers broker 2: after a znode that is no JSON broker 3 still leads it."""
    # Source: PreferredReplicaElectionListener (0.8.1), KafkaZkClient.getPreferredReplicaElection (2.8).
    world = cluster({"t": ((2, 3),)}, release=release)
    settle(world, ("kill", 2))
    settle(world, ("start", 2))
    before = len(world.journal.records)
    settle(world, ("create", PREFERRED_REPLICA_ELECTION, "nonsense"))
    assert stored(world)["t-0"][0] == 3
    assert [r for r in of_kind(world, "write", before) if r.fields["error"] or "state" in str(r.fields["ops"])] == []


@pytest.mark.parametrize("release", [*LISTENERS, "0.11.0", "1.0", "2.4", "2.8"])
def test_a_preferred_leader_that_leads_is_not_elected_again(release: str) -> None:
    """A preferred election of a partition that its first replica leads writes no state."""
    # Source: PreferredReplicaPartitionLeaderSelector, LeaderElectionNotNeededException (0.8.1, 1.0); KIP-183 (2.2).
    world = cluster({"t": ((2, 3),)}, release=release)
    before = stored(world)["t-0"]
    epochs = [value.leader_epoch for _, value in states(world)]
    settle(world, ("create", PREFERRED_REPLICA_ELECTION, encode_partition_list((T0,)).decode()))
    assert (stored(world)["t-0"], [value.leader_epoch for _, value in states(world)]) == (before, epochs)
    assert PREFERRED_REPLICA_ELECTION not in world.zk.tree()


@pytest.mark.parametrize("release", ["0.11.0", "1.0", "1.1", "2.4", "2.8", "3.9"])
def test_a_broker_that_finds_a_controller_does_not_try_to_become_one(release: str) -> None:
    """A broker that starts while `/controller` is there writes its registration and not `/controller`."""
    # Source: KafkaController.elect, `if (activeControllerId != -1) return` (0.11.0, 2.8).
    world = cluster({}, brokers=(1,), release=release)
    before = len(world.journal.records)
    settle(world, ("start", 2))
    written = {op[1] for r in of_kind(world, "write", before) if r.id.node == 2 for op in r.fields["ops"]}
    assert (broker_path(2) in written, CONTROLLER in written) == (True, False)
