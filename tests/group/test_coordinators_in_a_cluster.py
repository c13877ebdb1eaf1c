"""Coordinators in a simulated cluster: consumers, a coordinator that dies, its successor, and the journal that says it all."""

from __future__ import annotations

import random

import pytest

from kcontrol.cluster.consumer_clients import REQUESTED
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.core.errors import UserError
from kcontrol.core.model import TopicPartition
from kcontrol.core.releases import PLAYABLE_RELEASES
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.group.events import JoinTimedOut
from kcontrol.group.offsets_topic_records import decode
from kcontrol.journal.fold import fold
from kcontrol.journal.journal import to_json
from kcontrol.lab.lab import Lab
from tests.core.snapshots import without_defaults
from tests.core.support import settle

T = TopicPartition(OFFSETS_TOPIC, 0)
RELEASES = [release for release in PLAYABLE_RELEASES if not release.startswith("0.8")]


def started(settings: Settings) -> World:
    """Return a world at rest with a topic of three partitions, and with the offsets topic on all brokers, led by the first."""
    world = World(settings)
    for broker in settings.brokers:
        settle(world, ("start", broker))
    for topic, assignment in (("t", ((1,), (2,), (1,))), (OFFSETS_TOPIC, (settings.brokers,))):
        settle(world, ("create_topic", topic, assignment))
    return world


def cluster(release: str = "2.8", brokers: tuple[int, ...] = (1, 2), *, required_acks: int = -1, **more: object) -> World:
    """Brokers, a topic of three partitions, the offsets topic on all brokers with broker 1 leading it, and two consumers."""
    config = {"initial_delay_ms": 0, "required_acks": required_acks}
    settings = Settings(release, brokers, consumers={"a": "g", "b": "g"}, group_config=config, **more)  # type: ignore[arg-type]
    return started(settings)


def all_do(world: World, request: str, names: str = "ab") -> None:
    for name in names:
        settle(world, (request, name))


def fire(world: World, timer: str) -> None:
    broker = next(n for n, p in world.processes.items() if timer in p.driver.timers)
    settle(world, ("fire_timer", broker, timer))


def stable(release: str = "2.8", brokers: tuple[int, ...] = (1, 2), *, required_acks: int = -1) -> World:
    """Both consumers in one generation, with their assignments."""
    world = cluster(release, brokers, required_acks=required_acks)
    for name in "ab":
        settle(world, ("join", name))
        if world.consumers[name].error == "MEMBER_ID_REQUIRED":
            settle(world, ("join", name))
        if "join g" in world.processes[1].driver.timers and name == "a":
            fire(world, "join g")
    if world.consumers["b"].asked:
        all_do(world, "join", "a")
    all_do(world, "sync", "ba")
    return world


def agrees(world: World) -> None:
    assert without_defaults(fold(world.journal.records)) == without_defaults(plain_of(world))


def plain_of(world: World) -> dict[str, object]:
    return world.snapshot()


@pytest.mark.parametrize("release", RELEASES)
def test_a_group_forms_in_a_cluster(release: str) -> None:
    """Two consumers come into one generation and share the partitions of the topic between them; the fold says the same."""
    world = stable(release)
    group = world.processes[1].driver.group
    assert group is not None and group.groups["g"].state.value == "Stable"
    assert {me.generation for me in world.consumers.values()} == {group.groups["g"].generation}
    assigned = [decode("assignment", me.assignment)[1]["partitions"] for me in world.consumers.values()]
    assert all(assigned) and {entry["topic"] for entries in assigned for entry in entries} == {"t"}
    assert sorted(number for entries in assigned for entry in entries for number in entry["partitions"]) == [0, 1, 2]
    agrees(world)


@pytest.mark.parametrize("release", RELEASES)
def test_the_next_coordinator_reads_the_log(release: str) -> None:
    """When the coordinator dies, the broker that leads its partition next knows group and offsets, and members heartbeat on."""
    world = stable(release)
    settle(world, ("commit", "a", "t-0", 7))
    before = world.consumers["a"]
    settle(world, ("kill", 1))
    all_do(world, "heartbeat")
    assert [me.error for me in world.consumers.values()] == ["NONE", "NONE"]
    heir = world.processes[2].driver.group
    assert heir is not None and heir.groups["g"].generation == before.generation
    assert heir.offsets["g"].committed[TopicPartition("t", 0)].value.offset == 7
    agrees(world)


def test_requests_while_the_log_is_read_are_put_off() -> None:
    """Between the round trips of loading, a heartbeat is answered without an error and without a look at the group."""
    world = stable()
    world.step(("kill", 1))
    while not (heir := world.processes[2].driver.group) or not heir.loading:
        world.step(next(action for action in world.actions() if action[0] not in REQUESTED))
    while ("deliver_request", 2, 2) in world.actions():
        world.step(("deliver_request", 2, 2))  # so that broker 2's metadata has the new leader
    world.step(("heartbeat", "a"))
    while world.consumers["a"].asked:
        world.step(("begin", 2, "coordinator"))
    assert world.consumers["a"].error == "NONE" and heir.loading and "g" not in heir.groups
    twin = world.fork()
    twin.run()
    world.run()
    assert twin.fingerprint() == world.fingerprint()
    agrees(world)


def test_a_coordinator_that_was_succeeded_cannot_write() -> None:
    """A broker that was frozen during the election of its successor appends a commit that only its own log gets, and cuts it."""
    world = stable()
    settle(world, ("freeze", 1), ("expire_session", 1))
    world.step(("thaw", 1))
    before = world.processes[2].driver.broker.logs[T].records
    world.step(("commit", "a", "t-0", 9))
    assert world.consumers["a"].asked and len(world.processes[1].driver.broker.logs[T].records) == len(before) + 1
    world.run()
    assert world.consumers["a"].error == "NOT_COORDINATOR"
    assert {p.driver.broker.logs[T].records for p in world.processes.values()} == {before}
    agrees(world)


def test_a_stale_timer_means_nothing() -> None:
    """The end of a join phase that was queued before that phase ended does not end the next one."""
    world = stable()
    group = world.processes[1].driver.group
    assert group is not None
    world.step(("join", "a"))
    world.processes[1].driver.enqueue(JoinTimedOut("g", group.groups["g"].generation - 1), None)
    world.run()
    assert group.groups["g"].state.value == "PreparingRebalance"


def test_a_silent_member_is_removed() -> None:
    """When the timer of a's session fires, b's heartbeat is answered REBALANCE_IN_PROGRESS, and b leads alone."""
    world = stable()
    fire(world, f"session g {world.consumers['a'].member_id}")
    all_do(world, "heartbeat", "b")
    assert world.consumers["b"].error == "REBALANCE_IN_PROGRESS"
    all_do(world, "join", "b")
    assert world.consumers["b"].leader == world.consumers["b"].member_id
    agrees(world)


def test_a_lab_shows_groups() -> None:
    """Members with what they were assigned, offsets, and the machine with the number of groups in each state."""
    with Lab(brokers=2, consumers={"a": "g"}, topics={"t": [[1], [2]], OFFSETS_TOPIC: [[1, 2]]}, runs=None) as lab:
        lab.group.join("a").run().group.join("a").run()
        lab.fire_timer(1, "join g").run()
        lab.group.sync("a").run().commit("a", "t-1", 3).run()
        (member,) = lab.tables.members().to_dict("records")
        assert (member["state"], member["leads"], member["partitions"]) == ("Stable", True, ["t-0", "t-1"])
        assert lab.tables.offsets()[["partition", "offset"]].values.tolist() == [["t-1", 3]]
        assert "Stable 1" in lab.diagram("group").outline()
        with pytest.raises(UserError):
            lab.group.join("no-consumer")


def test_without_consumers_nothing_of_this_is_there() -> None:
    """No broker has a coordinator's threads, no request is possible, and nothing is in the snapshot."""
    world = World(Settings(brokers=(1,)))
    settle(world, ("start", 1))
    assert "coordinator" not in world.processes[1].driver.threads and "consumers" not in world.snapshot()
    with pytest.raises(UserError):
        world.step(("join", "a"))


@pytest.mark.parametrize("seed", range(6))
def test_the_journal_of_a_random_run_folds_to_its_snapshots(seed: int) -> None:
    """Whatever happens, fold and snapshot agree after every step, a fork goes the same way, and no handler throws."""
    chance = random.Random(seed)
    world = cluster(faults=("kill", "start", *REQUESTED))
    for number in range(120):
        offered = world.actions()
        wanted = [action for action in offered if action[0] in REQUESTED] if chance.random() < 0.3 else offered[:3]
        world.step(chance.choice(wanted or offered))
        if number % 20 == 0:
            agrees(world)
    assert [record.fields for record in world.journal.records if record.kind == "handler_error"] == []
    twin = world.fork()
    for one in (world, twin):
        one.run()
    assert to_json(twin.snapshot()) == to_json(world.snapshot())
    agrees(world)
