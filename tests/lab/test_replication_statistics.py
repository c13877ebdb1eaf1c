"""The counts of partitions that an operator looks for: under-replicated, under and at min.insync.replicas."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kcontrol import Lab
from kcontrol.journal import journal_file

URP, UNDER, AT = "UnderReplicatedPartitions", "UnderMinIsrPartitionCount", "AtMinIsrPartitionCount"
TWO = {"min.insync.replicas": 2}


def shown(lab: Lab, name: str) -> dict[int, object]:
    """The gauge at each broker that runs."""
    found = lab.tables.metrics().loc[(name, "Value")]
    return {n: found[n] for n in found.index if isinstance(n, int)}


def with_topic(opened: Callable[..., Lab], **settings: object) -> Lab:
    """Topic t with two partitions, led by 1 and 2, which needs two replicas in sync; the controller has no replica."""
    lab = opened([4, 1, 2, 3], runs=None, **settings)
    return lab.create_topic("t", [[1, 2, 3], [2, 3, 1]], TWO).run()


@pytest.mark.parametrize("data", [False, True])
def test_the_leader_counts(opened: Callable[..., Lab], data: bool) -> None:
    """Three in sync are enough, two are at the minimum, one is below it; each leader counts what it leads, no other broker."""
    # Source: Partition.isUnderReplicated, isUnderMinIsr and isAtMinIsr (2.8.2).
    lab = with_topic(opened, data=data)
    assert [shown(lab, name) for name in (URP, UNDER, AT)] == [dict.fromkeys((1, 2, 3, 4), 0)] * 3
    lab.kill(3).run()
    assert [shown(lab, name) for name in (URP, UNDER, AT)] == [{1: 1, 2: 1, 4: 0}, {1: 0, 2: 0, 4: 0}, {1: 1, 2: 1, 4: 0}]
    lab.kill(2).run()
    assert [shown(lab, name) for name in (URP, UNDER, AT)] == [{1: 2, 4: 0}, {1: 2, 4: 0}, {1: 0, 4: 0}]


def test_counts_are_whole_numbers(opened: Callable[..., Lab]) -> None:
    """A count is shown as 0 and not as 0.0."""
    lab = with_topic(opened)
    assert all(type(value) is int for value in shown(lab, URP).values())
    assert lab.tables.metrics().loc[("ActiveControllerCount", "Value")].to_string().split()[-1] in ("0", "1")


@pytest.mark.parametrize(("settings", "under"), [({}, 0), ({"config": TWO}, 1)])
@pytest.mark.parametrize("data", [False, True])
def test_the_brokers_setting(opened: Callable[..., Lab], settings: dict[str, object], under: int, data: bool) -> None:
    """A topic without a setting of its own goes by that of the brokers, in runs with logs and without."""
    lab = opened(2, runs=None, topics={"t": [[1, 2]]}, data=data, **settings).kill(2).run()
    assert shown(lab, UNDER) == {1: under}


@pytest.mark.parametrize(("release", "under"), [("2.8", 1), ("3.9", 0)])
def test_more_than_there_are_replicas(opened: Callable[..., Lab], release: str, under: int) -> None:
    """A setting above the number of replicas counts as that number since 3.7. Source: Partition.effectiveMinIsr (3.7.0)."""
    lab = opened(2, release=release, runs=None).create_topic("t", [[1, 2]], {"min.insync.replicas": 3}).run()
    assert shown(lab, UNDER)[1] == under


@pytest.mark.parametrize(("release", "counted"), [("2.4", 1), ("2.8", 0)])
def test_added_replicas_are_not_missing(opened: Callable[..., Lab], release: str, counted: int) -> None:
    """While a reassignment adds a replica that does not catch up, 2.4 counts the partition, and since 2.5 nothing is missing."""
    # Source: KIP-352, OngoingReassignmentState.replicationFactor (2.8.2).
    lab = opened(3, release=release, runs=None, topics={"t": [[1, 2]]})
    lab.freeze(3).reassign({"t-0": [1, 3]}).run()
    assert lab.tables.ongoing_reassignments().missing.tolist() == [[3]]
    assert shown(lab, URP)[1] == counted


def test_a_saved_run_has_the_same_counts(opened: Callable[..., Lab], tmp_path_factory: pytest.TempPathFactory) -> None:
    """The counts come from the journal alone, read back from its file too."""
    lab = with_topic(opened).kill(3).run()
    path = tmp_path_factory.mktemp("saved") / "run.jsonl"
    lab.save(path)
    assert str(Lab.open(path).tables.prometheus()).replace('run="run"', 'run="simulated"') == str(lab.tables.prometheus())
    assert journal_file.read(path)
