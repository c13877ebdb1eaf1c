"""Requests are folded by a pure function into one batch per broker."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kcontrol.cluster.snapshot import context
from kcontrol.controller.context import ControllerContext, apply_update
from kcontrol.controller.handlers import design_of
from kcontrol.controller.request_batch import RequestBatch, Requests
from kcontrol.core.effects import Send, UpdateContext
from kcontrol.core.model import LeaderAndIsr, ReplicaAssignment
from kcontrol.core.znodes import CONTROLLER
from tests.core.support import RULES_2_8, T0, T1, U0, cluster, of_kind, settle, until

ASSIGNED = ReplicaAssignment((1, 2, 3))


def known(
    *, live: tuple[int, ...] = (1, 2, 3), leaving: tuple[int, ...] = (), deleted: tuple[str, ...] = ()
) -> ControllerContext:
    """Controller 1 under epoch 4, with t-0 and t-1 led by 1, and u-0, which never had a leader."""
    ctx = ControllerContext(1, RULES_2_8, design_of(RULES_2_8))
    for learn in (
        UpdateContext("controller_epoch", 4),
        UpdateContext("live_broker_epochs", {b: 10 + b for b in live}),
        UpdateContext("shutting_down_broker_ids", leaving),
        UpdateContext("topics_to_be_deleted", deleted),
        UpdateContext("assignments", {T0: ASSIGNED, T1: ASSIGNED, U0: ASSIGNED}),
        UpdateContext("leadership", {tp: LeaderAndIsr(1, (1, 2), 5, 6, 3) for tp in (T0, T1)}),
    ):
        apply_update(ctx, learn)
    return ctx


def add(
    batch: RequestBatch, ctx: ControllerContext, brokers: tuple[int, ...], leader_epoch: int = 5, *, is_new: bool = False
) -> None:
    batch.add_leader_and_isr(ctx, brokers, T0, LeaderAndIsr(1, (1, 2), leader_epoch, 6, 4), ASSIGNED, is_new=is_new)


def folded(ctx: ControllerContext, *calls: Any) -> Requests:
    batch = RequestBatch()
    for call in calls:
        call(batch)
    return batch.fold(ctx)


@pytest.mark.parametrize("seed", range(6))
def test_an_entry_of_a_batch_is_as_if_made_at_each_call(seed: int) -> None:
    """Leadership and assignments change between the calls: the batch equals one that makes each entry of UpdateMetadata anew."""
    chance, ctx, kept, anew = random.Random(seed), known(), RequestBatch(), RequestBatch()
    for epoch in range(60):
        tp, leader = chance.choice((T0, T1, U0)), chance.choice((1, 2, 3))
        replicas = tuple(chance.sample((1, 2, 3), chance.randint(1, 3)))
        match chance.randrange(5):
            case 0:
                apply_update(ctx, UpdateContext("leadership", {tp: LeaderAndIsr(leader, (1, 2), epoch, 6, 4)}))
            case 1:
                apply_update(ctx, UpdateContext("assignments", {tp: ReplicaAssignment(replicas)}))
            case 2 if epoch % 10 == 0:
                assert kept.fold(ctx) == anew.fold(ctx)
                assert list(kept.send_requests_to_brokers(ctx)) == list(anew.send_requests_to_brokers(ctx))
        value = ctx.leadership.get(tp) or LeaderAndIsr(leader, (1, 2), epoch, 6, 4)
        for batch in (kept, anew):
            batch.add_leader_and_isr(ctx, replicas, tp, value)
        anew.described.clear()
        assert kept.fold(ctx) == anew.fold(ctx)


def test_folding_changes_nothing() -> None:
    """The same calls fold to the same requests every time, and neither context nor batch is another one afterwards."""
    ctx, batch = known(), RequestBatch()
    add(batch, ctx, (2, 3))
    before = context(ctx)
    assert batch.fold(ctx) == batch.fold(ctx)
    assert context(ctx) == before


def test_once_new_a_partition_stays_new_in_its_batch() -> None:
    """A later call that does not say new leaves the flag as it is, for the brokers of the earlier call alone."""
    # Source: ControllerBrokerRequestBatch.addLeaderAndIsrRequestForBrokers (2.8).
    ctx = known()
    entries = folded(ctx, lambda b: add(b, ctx, (2,), is_new=True), lambda b: add(b, ctx, (2, 3))).leader_and_isr
    assert {broker: entries[broker][T0].is_new for broker in entries} == {2: True, 3: False}


def test_the_last_call_wins() -> None:
    """Of two calls for one partition a broker gets the values of the second."""
    ctx = known()
    entries = folded(ctx, lambda b: add(b, ctx, (2,), leader_epoch=5), lambda b: add(b, ctx, (2,), leader_epoch=6)).leader_and_isr
    assert entries[2][T0].leader_epoch == 6


def test_all_brokers_get_every_change_as_metadata() -> None:
    """All live brokers, also those that shut down, get as metadata the values that one broker gets as leader or follower."""
    ctx = known(leaving=(3,))
    requests = folded(ctx, lambda b: add(b, ctx, (2,)))
    assert (requests.update_metadata_to, list(requests.update_metadata), requests.live_brokers) == ((1, 2, 3), [T0], (1, 2, 3))
    assert requests.update_metadata[T0].offline_replicas == (3,)


def test_requests_go_out_api_by_api() -> None:
    """All LeaderAndIsr come first, then all UpdateMetadata, then all StopReplica, whatever was called when."""
    # Source: ControllerBrokerRequestBatch.sendRequestsToBrokers (2.8).
    ctx = known()
    requests = folded(ctx, lambda b: b.add_stop_replica(ctx, (3,), T1, delete=False), lambda b: add(b, ctx, (2, 1)))
    assert requests.in_send_order() == [
        *(("LeaderAndIsr", broker) for broker in (1, 2)),
        *(("UpdateMetadata", broker) for broker in (1, 2, 3)),
        ("StopReplica", 3),
    ]


def test_unknown_brokers_get_no_request() -> None:
    """Dead brokers, and the -1 of a partition without leader, get no request of any kind."""
    ctx = known(live=(1, 2))
    requests = folded(
        ctx, lambda b: add(b, ctx, (-1, 2, 3)), lambda b: b.add_update_metadata(ctx, (-1, 3), (T1,)),
        lambda b: b.add_stop_replica(ctx, (-1, 3), T1, delete=True),
    )  # fmt: skip
    assert {broker for _, broker in requests.in_send_order()} == {1, 2}
    assert requests.broker_epochs == {1: 11, 2: 12}
    assert requests.stop_replica == {}


def test_a_partition_that_was_never_led_is_not_metadata() -> None:
    """UpdateMetadata leaves out partitions whose leadership is unknown, and still goes out without any."""
    ctx = known()
    requests = folded(ctx, lambda b: b.add_update_metadata(ctx, (2,), (U0,)))
    assert (requests.update_metadata, requests.in_send_order()) == ({}, [("UpdateMetadata", 2)])


def test_a_topic_that_is_being_deleted_is_announced_as_gone() -> None:
    """Its partitions have leader -2 and epoch 0 in the metadata, and leader epoch -2 where their replicas are stopped."""
    ctx = known(deleted=("t",))
    requests = folded(
        ctx, lambda b: b.add_update_metadata(ctx, (2,), (T0,)), lambda b: b.add_stop_replica(ctx, (3,), T0, delete=False)
    )
    entry = requests.update_metadata[T0]
    assert (entry.leader, entry.leader_epoch, entry.zk_version) == (-2, 0, 0)
    assert requests.stop_replica[3][T0].leader_epoch == -2


def test_stop_replica_has_the_leader_epoch() -> None:
    """StopReplica carries the cached leader epoch, or -1 where none is known; a later call cannot take back `delete`."""
    ctx = known()
    requests = folded(
        ctx, lambda b: b.add_stop_replica(ctx, (3,), T0, delete=True), lambda b: b.add_stop_replica(ctx, (3,), T0, delete=False),
        lambda b: b.add_stop_replica(ctx, (3,), U0, delete=False),
    )  # fmt: skip
    assert {tp: tuple(entry) for tp, entry in requests.stop_replica[3].items()} == {T0: (5, True), U0: (-1, False)}


def test_a_batch_is_sent_once() -> None:
    """Sending a batch yields one `Send` and leaves the batch empty; an empty batch yields nothing."""
    ctx, batch = known(), RequestBatch()
    add(batch, ctx, (2,))
    first = list(batch.send_requests_to_brokers(ctx))
    assert [type(effect) for effect in first] == [Send]
    assert list(batch.send_requests_to_brokers(ctx)) == []
    assert first[0].requests.leader_and_isr[2][T0].leader_epoch == 5


def test_plain_requests_hold_each_value_once() -> None:
    """In JSON the values of a partition stand once, with the positions for each broker; what is empty is left out."""
    ctx = known()
    plain = folded(
        ctx, lambda b: add(b, ctx, (2,)), lambda b: add(b, ctx, (3,)), lambda b: add(b, ctx, (1,), is_new=True)
    ).to_json()
    values = plain["leader_and_isr"]["values"]
    assert [(value["partition"], value["is_new"]) for value in values] == [("t-0", True), ("t-0", False)]
    assert plain["leader_and_isr"]["to"] == {"1": [0], "2": [1], "3": [1]}
    assert list(plain["update_metadata"]["partitions"]) == ["t-0"]
    assert "stop_replica" not in plain


# ---------------------------------------------------------------- in a cluster


def test_requests_are_sent_after_the_writes_that_they_follow_from() -> None:
    """When a leader dies, the `send` record of each partition comes after the record of its state znode."""
    world = cluster()
    settle(world, ("kill", 3))
    written = {
        str(r.fields["subject"]): i for i, r in enumerate(world.journal.records) if r.kind == "change" and r.fields["write"]
    }
    sent = {
        tp: i
        for i, r in enumerate(world.journal.records)
        if r.kind == "send"
        for entries in r.fields["requests"].leader_and_isr.values()
        for tp in entries
    }
    assert written["u-0"] < sent[U0]
    for tp, position in sent.items():
        assert any(at < position for subject, at in written.items() if subject.startswith(str(tp)))


def test_a_channel_delivers_in_order_and_one_at_a_time() -> None:
    """Each broker handles the requests of a sender in the order of sending, the three kinds of a batch in their order."""
    world = cluster()
    settle(world, ("delete", CONTROLLER))
    sent = [r for r in of_kind(world, "send") if r.id.node != 1]
    expected = {b: [(r.id, api) for r in sent for api, to in r.fields["requests"].in_send_order() if to == b] for b in (1, 2, 3)}
    handled = {
        b: [(r.cause, r.fields["api"]) for r in of_kind(world, "receive") if r.id.node == b and r.cause.node != 1]
        for b in (1, 2, 3)
    }
    assert handled == expected


def test_a_channel_has_one_request_in_flight() -> None:
    """While a request is being worked on, the next one to the same broker is not delivered; its answer makes room."""
    # Source: RequestSendThread in ControllerChannelManager.scala (2.8).
    world = cluster(followers=False)
    world.step(("delete", CONTROLLER))
    until(world, lambda w: any(len(waiting) > 1 for waiting in w.network.channels.values()))
    network = world.network
    pair = next(pair for pair, waiting in network.channels.items() if len(waiting) > 1)
    first, second = list(network.channels[pair])[:2]
    event: Any = network.request_event(pair)
    assert pair not in network.deliverable()
    assert network.answered(event.correlation_id) == (pair, first)
    assert pair in network.deliverable()
    assert network.channels[pair][0] == second
    assert network.answered(event.correlation_id) is None


def test_requests_for_a_broker_that_bounced_are_thrown_away() -> None:
    """What waits for a broker's former life is never handled by its next one."""
    world = cluster(followers=False)
    settle(world, ("freeze", 3), ("create_topic", "v", ((1, 3),)))
    waiting = [str(parcel.record) for parcel in world.network.channels[1, 3]]
    settle(world, ("kill", 3), ("expire_session", 3), ("start", 3))
    handled = [str(r.cause) for r in of_kind(world, "receive") if r.id.node == 3]
    assert waiting
    assert set(waiting) & set(handled) == set()
    assert of_kind(world, "close_channels")[-1].fields["to"] == [3]
