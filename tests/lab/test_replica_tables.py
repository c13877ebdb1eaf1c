"""Replicas and what is said of them: the controller's states, brokers' orders, and the caches that clients are served from."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError

Opened = Callable[..., Lab]
TOPIC = {"t": [[1, 2, 3]]}
BROKERS = (5, 1, 2, 3, 4)
REPLICAS = {"state": "string", "alive": "bool", "in_sync": "bool", "role": "string", "leader_epoch": "Int64"}
VIEWS = {"leader": "Int64", "isr": "object", "leader_epoch": "Int64", "controller_epoch": "Int64", "zk_version": "Int64"}


def types(found: pd.DataFrame) -> dict[str, str]:
    return found.dtypes.astype(str).to_dict()


def knows(lab: Lab, isr: list[int]) -> list[str]:
    """The places that say this ISR of t-0."""
    found = lab.tables.leadership_views("t-0").isr
    return [where for where, said in found.items() if said == isr]


def test_without_a_topic_there_is_no_row(opened: Opened) -> None:
    """Without a topic the table has no row, and every column has its type."""
    assert len(opened(1).tables.replicas()) == 0 and types(opened(1).tables.replicas()) == REPLICAS


def test_a_replica_has_the_state_of_the_controller_and_the_role_of_its_broker(opened: Opened) -> None:
    """One replica leads, one follows, and the replica of a dead broker is Offline and has no role."""
    found = opened(BROKERS, topics=TOPIC).kill(3).run().tables.replicas()
    assert types(found) == REPLICAS
    assert found.state.tolist() == ["OnlineReplica", "OnlineReplica", "OfflineReplica"]
    assert found.alive.tolist() == found.in_sync.tolist() == [True, True, False]
    assert found.role.fillna("-").tolist() == ["leads", "follows 1", "-"]
    assert found.leader_epoch.fillna(-1).tolist() == [1, 1, -1]


def test_a_new_replica_follows_the_leader(opened: Opened) -> None:
    """Chapter 7: while a move waits for it a replica is New, hosted, and not in sync. Source: NewReplica (2.8)."""
    lab = opened(BROKERS, topics=TOPIC).freeze(1).reassign({"t-0": [1, 2, 4]}).run()
    assert lab.tables.replicas().loc["t-0@4", ["state", "in_sync", "role"]].tolist() == ["NewReplica", False, "follows 1"]
    assert lab.thaw(1).run().tables.replicas().state["t-0@4"] == "OnlineReplica"


def test_a_recording_has_no_roles() -> None:
    """A recording has states and ISRs; the roles, which brokers know from requests, are missing."""
    found = Lab.open("2.8.2/controlled-shutdown").tables.replicas()
    assert set(found.state) == {"OnlineReplica"} and found.role.isna().all()
    assert list(Lab.open("2.8.2/controlled-shutdown").tables.leadership_views("t-0").index) == ["ZooKeeper", "1 controls"]


def test_every_living_broker_gets_the_smaller_isr_after_a_death(opened: Opened) -> None:
    """ZooKeeper, the controller, the live replicas and the metadata of all live brokers have the ISR without the dead broker."""
    lab = opened(BROKERS, topics=TOPIC).kill(3).run()
    places = ["ZooKeeper", "5 controls", "1 hosts", "1 metadata", "2 hosts", "2 metadata", "4 metadata", "5 metadata"]
    assert knows(lab, [1, 2]) == list(lab.tables.leadership_views("t-0").index) == places
    assert types(lab.tables.leadership_views("t-0")) == VIEWS


def test_0_8_1_sends_a_smaller_isr_to_the_leader_alone(opened: Opened) -> None:
    """Chapter 7: the other follower keeps the old leader epoch. Source: ReplicaStateMachine.handleStateChange (0.8.1)."""
    lab = opened(BROKERS, topics=TOPIC, release="0.8.1").kill(3).run()
    assert knows(lab, [1, 2, 3]) == ["2 hosts"] and lab.tables.leadership_views("t-0").leader_epoch["2 hosts"] == 0


@pytest.mark.parametrize(
    ("release", "outdated"),
    [
        ("0.8.1", ["5 controls", "1 metadata", "2 hosts", "2 metadata", "4 metadata", "5 metadata"]),
        ("2.4", ["2 hosts"]),
        ("2.8", ["2 hosts"]),
    ],
)
def test_the_places_with_the_old_isr_after_a_shrink(opened: Opened, release: str, outdated: list[str]) -> None:
    """Chapter 7: a leader's new ISR reaches no other broker in 0.8.1, and metadata alone in 2.4 and 2.8. Broker 3 is frozen."""
    lab = opened(BROKERS, topics=TOPIC, release=release).freeze(3).shrink_isr("t-0", 3).run()
    assert [place for place in knows(lab, [1, 2, 3]) if not place.startswith("3 ")] == outdated
    assert set(lab.tables.leadership_views("t-0").leader_epoch) == {0}


def test_a_partition_that_is_not_there(opened: Opened) -> None:
    """The refusal names the partitions of the run."""
    with pytest.raises(UserError, match="There is no partition 'x-0'; the partitions are t-0"):
        opened(3, topics=TOPIC).tables.leadership_views("x-0")


def test_a_partition_that_never_had_a_leader_has_no_views(opened: Opened) -> None:
    """No cache and no znode has a leadership of a New partition."""
    assert len(opened(2).kill(2).run().create_topic("u", [[2]]).run().tables.leadership_views("u-0")) == 0
