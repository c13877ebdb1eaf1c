"""A controller that closes channels and a broker that is frozen: how long the one waits, and what the other reads afterwards."""

from __future__ import annotations

import pytest

from kcontrol.cluster import actions
from kcontrol.cluster.world import World
from kcontrol.core.znodes import CONTROLLER
from kcontrol.journal.fold import fold
from tests.core.snapshots import without_defaults
from tests.core.support import cluster, of_kind, settle, stored

WAITING, AT_ONCE = ("0.10.2", "0.11.0", "1.0", "1.1"), ("0.8.1", "0.9", "2.4", "2.8")


def with_a_request_out(release: str, topics: dict[str, tuple[tuple[int, ...], ...]], brokers: tuple[int, ...]) -> World:
    """Return a world whose last broker is frozen while UpdateMetadata of the controller, broker 1, is out at it."""
    world = cluster(topics, brokers=brokers, release=release)
    world.step(("freeze", brokers[-1]))
    world.step(("create_topic", "u", ((1,),)))
    while action := next((a for a in actions.routine_actions(world) if a[0] not in ("time_out_request", "fire_timer")), None):
        world.step(action)
    assert world.network.channels[1, brokers[-1]][0].api == "UpdateMetadata"
    return world


def rest(world: World) -> None:
    """Go on until nothing but the end of a wait is left."""
    while action := next((a for a in actions.routine_actions(world) if a[0] != "time_out_request"), None):
        world.step(action)


@pytest.mark.parametrize(("release", "waits"), [(r, True) for r in WAITING] + [(r, False) for r in AT_ONCE])
def test_a_resignation_waits_for_a_request_at_a_frozen_broker(release: str, waits: bool) -> None:
    """From 0.10.2 to 2.1.0 `/controller` stays away until the request times out; then the only living broker takes it again."""
    # Source: removeExistingBroker (KAFKA-4959), RequestSendThread.initiateShutdown (KAFKA-7576); recordings resign-frozen-broker,
    # -long.
    world = with_a_request_out(release, {"t": ((1,),)}, (1, 2))
    world.step(("delete", CONTROLLER))
    rest(world)
    assert list(actions.routine_actions(world)) == ([("time_out_request", 1, 2)] if waits else [])
    assert world.exist(CONTROLLER) == [not waits]
    assert without_defaults(fold(world.journal.records)) == without_defaults(world.snapshot())
    world.run()
    assert world.exist(CONTROLLER) == [True]


@pytest.mark.parametrize("release", WAITING)
def test_a_resignation_ends_with_the_answer_of_a_thawed_broker(release: str) -> None:
    """After its thaw the broker answers the request that was out before the former controller goes on."""
    world = with_a_request_out(release, {"t": ((1,),)}, (1, 2))
    world.step(("delete", CONTROLLER))
    rest(world)
    before = len(world.journal)
    settle(world, ("thaw", 2))
    kinds = [
        r.kind for r in world.journal.records[before:] if r.kind == "response" or (r.kind == "close_channels" and r.id.node == 1)
    ]
    assert kinds[:1] == ["response"]
    assert world.exist(CONTROLLER) == [True]
    assert of_kind(world, "time_out_request") == []


@pytest.mark.parametrize(("release", "waits"), [(r, True) for r in WAITING] + [(r, False) for r in AT_ONCE])
def test_the_removal_of_a_frozen_broker_waits_for_its_request(release: str, waits: bool) -> None:
    """The session of a frozen leader ends, and from 0.10.2 to 2.1.0 the next leader comes only when the request has timed out."""
    # Source: KafkaController.processBrokerChange (1.1); the recordings removal-frozen-broker of 1.1.1 and 2.8.2.
    world = with_a_request_out(release, {"t": ((3, 1),)}, (1, 2, 3))
    world.step(("expire_session", 3))
    rest(world)
    assert stored(world)["t-0"][0] == (3 if waits else 1)
    world.run()
    assert stored(world)["t-0"] == (1, (1,))


@pytest.mark.parametrize(("release", "reads"), [("1.1", True), ("2.8", True), ("0.9", False)])
def test_a_frozen_broker_reads_what_was_left_in_its_socket(release: str, reads: bool) -> None:
    """A thawed broker handles the request of a closed channel, and its answer reaches no broker; 0.9 drops the request."""
    # Source: Selector.close (0.9.0.1, 0.10.2.2); the recordings resign-frozen-broker of 1.1.1 and 2.8.2.
    world = with_a_request_out(release, {"t": ((3, 1),)}, (1, 2, 3))
    settle(world, ("expire_session", 3))
    assert ((1, 3) in world.network.channels) is reads
    assert without_defaults(fold(world.journal.records)) == without_defaults(world.snapshot())
    before = len(world.journal)
    settle(world, ("thaw", 3))
    sent = [r for r in of_kind(world, "send", before) if r.id.node == 1 and 3 in r.fields["requests"].update_metadata_to]
    received = [r for r in of_kind(world, "receive", before) if r.id.node == 3 and r.fields["api"] == "UpdateMetadata"]
    assert len(received) - len(sent) == int(reads)
