"""Watches and notifications, counted from journals: the other party is ZooKeeper's own table of watches."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.journal.journal import OUTSIDE, Record, RecordId
from kcontrol.lab.tables.zookeeper_costs import MOST, election_costs, watch_costs
from kcontrol.views import watch_counts
from kcontrol.zookeeper.memory import MemoryZooKeeper
from tests.lab.support import refusal

ACTS: list[Callable[[Lab], Lab]] = [
    lambda lab: lab.create_topic("t", [[1, 2, 3], [2, 3, 1]]),
    lambda lab: lab.kill(2),
    lambda lab: lab.start(2),
    lambda lab: lab.kill(3),
    lambda lab: lab.start(3),
    lambda lab: lab.expire_session(2),
    lambda lab: lab.freeze(3),
    lambda lab: lab.expire_session(3),
    lambda lab: lab.thaw(3),
    lambda lab: lab.zk.delete("/controller"),
    lambda lab: lab.terminate(1),
    lambda lab: lab.zk.set("/controller", '{"version":1,"brokerid":3,"timestamp":"0"}'),
]


def at_zookeeper(lab: Lab) -> list[tuple[int, str, str]]:
    """The watches of living brokers in the table of the ZooKeeper in memory, which is compared with a real one elsewhere."""
    world = lab._world
    assert isinstance(world.zk, MemoryZooKeeper)
    mine = {process.driver.client.session_id: n for n, process in world.processes.items()}
    return sorted((mine[session], path, kind) for path, kind, session in world.zk.watches() if session in mine)


def test_what_stands_is_what_zookeeper_has(opened: Callable[..., Lab]) -> None:
    """After every step of a run with deaths, pauses, expiries and client writes, the journal has each watch of ZooKeeper."""
    lab = opened([3, 2, 1])
    for act in ACTS:
        act(lab)
        for _ in range(1_000):
            held = [watch for watch in watch_counts.open_watches(lab.records) if str(watch.broker) in lab.state["nodes"]]
            assert held == at_zookeeper(lab)
            if (following := next(iter(lab.actions()), None)) is None or following[0] in (
                "kill",
                "expire_session",
                "fire_timer",
                "start",
            ):
                break
            lab.step(following)
        lab.run()
        assert watch_counts.open_watches(lab.records) == at_zookeeper(lab)
    assert list(lab.tables.watches().columns) == ["broker", "path", "kind"] and len(lab.tables.watches()) == len(
        at_zookeeper(lab)
    )


def test_the_counted_watches_are_those_of_zookeeper(opened: Callable[..., Lab]) -> None:
    """With the design of the run, the counts are the watches and the notifications that ZooKeeper had."""
    lab = opened([3, 2, 1])
    for act, coalesced in ((ACTS[0], 0), (ACTS[1], 0), (ACTS[2], 0), (ACTS[3], 1), (ACTS[4], 0), (lambda lab: lab.kill(2), 0)):
        since = len(lab.records)
        act(lab).run()
        found = watch_counts.count(lab.records, watch_counts.ONE_CONTROLLER, since)
        assert found.watches == len(at_zookeeper(lab))
        assert (
            found.notifications - sum(record.kind == "notify" for record in lab.records[since:]) == coalesced
        )  # created before it was watched anew


def test_the_design_without_controller_costs_what_is_counted_here(opened: Callable[..., Lab]) -> None:
    """In a cluster of two brokers the design without a controller costs the watches and notifications that are counted here."""
    lab = opened(2, topics={"t": [[1, 2]]})
    since = len(lab.records)
    standing = watch_counts.count(lab.records, watch_counts.EVERY_BROKER).watches
    assert standing == 2 * (1 + 2 + 1 + 1) + 2  # both: ids, two brokers, topics, one topic; and each replica its state
    lab.kill(2).run()
    # broker 1 alone is left: its notifications are about broker 2's znode, the children of ids, and the new state
    assert watch_counts.count(lab.records, watch_counts.EVERY_BROKER, since).notifications == 3


def test_costs_grow_with_the_cluster_in_one_design_alone() -> None:
    """With one controller a death costs two notifications at any size; if every broker watches, a larger cluster costs more."""
    found = watch_costs([(3, 3), (5, 20)]).set_index(["design", "brokers"])
    assert found.loc["one controller"].notifications.tolist() == [2, 2]
    small, large = found.loc["every broker watches"].notifications
    assert 2 < small < large
    assert found.loc["every broker watches"].requests.tolist() == [0, 0] and (found.loc["one controller"].requests > 0).all()


@pytest.mark.parametrize("size", [(0, 3), (3, 0), (MOST, 2)])
def test_sizes_that_cannot_be_counted(size: tuple[int, int]) -> None:
    """A size below 1 or above the limit is refused in a sentence."""
    with pytest.raises(UserError) as problem:
        watch_costs([size])
    assert "cannot be counted" in refusal(problem)


def test_a_queue_has_no_herd() -> None:
    """With one znode every other client gets a notification of the leader's death; in a queue one client gets it."""
    found = election_costs(7).set_index("recipe")
    assert found.notified_of_death.to_dict() == {"one znode": 6, "a queue": 1}
    assert found.watches.to_dict() == {"one znode": 7, "a queue": 6}
    with pytest.raises(UserError) as problem:
        election_costs(1)
    assert "from 2 to 100" in refusal(problem)


@pytest.mark.zookeeper
@pytest.mark.slow
def test_the_herd_on_a_real_zookeeper(opened: Callable[..., Lab]) -> None:
    """Both recipes cost on a real server what they cost in memory, and leave no znode that a second count would find."""
    lab = opened(1, world="zookeeper")
    for _ in range(2):
        assert election_costs(4, lab.zk.address).equals(election_costs(4))


def test_where_nothing_is_only_exists_leaves_a_watch() -> None:
    """Reading a znode that is missing, or its children, leaves no watch; asking whether it is there does."""

    def reads(seq: int, how: str, path: str, seen: int | None) -> Record:
        fields = {"how": how, "paths": [path], "seen": [seen], "watch": True}
        return Record(RecordId(1, 1, seq), "read", None, 0, fields)

    missing = [reads(1, "read", "/a", None), reads(2, "children", "/b", None), reads(3, "exists", "/c", None)]
    assert watch_counts.open_watches(missing) == [(1, "/c", "data")]
    there = [reads(4, "read", "/a", 7), reads(5, "children", "/a", 7), reads(6, "children", "/b", 8)]
    assert len(watch_counts.open_watches([*missing, *there])) == 4
    gone = Record(RecordId(OUTSIDE, 0, 1), "notify", None, 0, {"to": 1, "type": "NodeDeleted", "path": "/a"})
    assert watch_counts.open_watches([*missing, *there, gone]) == [(1, "/b", "children"), (1, "/c", "data")]
