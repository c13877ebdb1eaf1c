"""What passes between threads, brokers and ZooKeeper: watch events, requests, fetches, timers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kcontrol.controller.handlers import event_of, listens
from kcontrol.events import LeaderAndIsrRequest, ReplicaCaughtUp, ReplicaLags
from kcontrol.model import TopicPartition
from kcontrol.sim import held_answers_1_0

if TYPE_CHECKING:
    from kcontrol.sim.world import World


def hears(world: World, broker: int) -> bool:
    """Whether a process is there and can be spoken to."""
    p = world.processes.get(broker)
    return p is not None and not p.frozen


# ---------------------------------------------------------------- threads and watch events


def begin(world: World, n: int, thread: str) -> None:
    world.processes[n].driver.begin(thread)


def advance(world: World, n: int, thread: str) -> None:
    world.processes[n].driver.advance(thread)


def deliver(world: World, n: int) -> None:
    """The next watch event of the session becomes an event of the queue, if its path still has a handler."""
    p = world.processes[n]
    notice = p.notices.popleft()
    said, path = notice.event
    design = p.driver.controller.rules.design
    event = event_of(said, path, design) if listens(said, path, design, p.driver.watched) else None
    if event is None:
        p.driver.log("drop", notice.record, type=said, path=path)
    else:
        p.driver.enqueue(event, notice.record, noticed=True)


# ---------------------------------------------------------------- requests


def travels(world: World, sender: int, receiver: int) -> bool:
    """Whether the first request of this channel can be handled now by its receiver."""
    first = world.network.channels[sender, receiver][0]
    sends = sender not in world.processes or first.is_left or hears(world, sender)
    if not (hears(world, receiver) and sends):
        return False
    return not held_answers_1_0.is_locked(world, receiver, first.api)


def is_connected(world: World, sender: int, receiver: int) -> bool:
    """Whether the process lives that has sent the first request of this channel."""
    p = world.processes.get(sender)
    first = world.network.channels[sender, receiver][0]
    return p is not None and not first.is_left and p.driver.incarnation == first.record.incarnation


def begin_if_idle(world: World, n: int, thread: str = "requests") -> None:
    """Let a thread take its next event at once, if it is idle and its process is not frozen."""
    driver = world.processes[n].driver
    if hears(world, n) and driver.can_begin(driver.threads[thread]):
        driver.begin(thread)


def deliver_request(world: World, sender: int, receiver: int) -> None:
    """The first request of a channel is handled by its receiver, whose answer goes back at once unless a fetch holds it back."""
    parcel = world.network.channels[sender, receiver][0]
    event = world.network.request_event((sender, receiver))
    driver = world.processes[receiver].driver
    record = driver.log("receive", parcel.record, api=parcel.api, sender=sender)
    if isinstance(event, LeaderAndIsrRequest):
        held_answers_1_0.note_fetches(world, driver, event.correlation_id, record)
    driver.enqueue(event, record, "requests")
    begin_if_idle(world, receiver)


def lose(world: World, sender: int, receiver: int) -> None:
    """The connection breaks before the request arrives: the sender sends the same request again."""
    parcel = world.network.channels[sender, receiver][0]
    world.log("lose", parcel.record, sender=sender, receiver=receiver, api=parcel.api)


def duplicate(world: World, sender: int, receiver: int) -> None:
    """The connection breaks before the answer arrives: the receiver will hear the same request again."""
    parcel = world.network.channels[sender, receiver][0]
    world.log("duplicate", parcel.record, sender=sender, receiver=receiver, api=parcel.api)
    world.network.channels[sender, receiver].appendleft(parcel)
    deliver_request(world, sender, receiver)


def fetch(world: World, follower: int, partition: str) -> None:
    """A follower catches up with its leader, which takes note of it."""
    tp = TopicPartition.parse(partition)
    leader = world.processes[world.processes[follower].driver.broker.hosted[tp].value.leader].driver
    leader.enqueue(ReplicaCaughtUp(tp, follower), None, "requests")
    begin_if_idle(world, leader.node)


def fetches(world: World) -> Iterator[tuple[int, TopicPartition]]:
    """Followers outside the ISR that agree with a living leader about who leads and, where fetches name it, since when.

    In 0.8.0 a leader takes in whoever fetches, one of its replicas or not (KAFKA-1097).
    """
    for n, p in sorted(world.processes.items()):
        broker = p.driver.broker
        is_free = not broker.rules.fetch_names_epoch
        for tp, held in p.driver.behind.items() if not p.frozen else ():
            strangers = (
                [b for b in sorted(world.processes) if b not in held.replicas] if p.driver.broker.rules.strangers_obey else []
            )
            for follower in (*held.replicas, *strangers):
                other = world.processes.get(follower)
                if (
                    follower == n
                    or follower in held.value.isr
                    or other is None
                    or other.frozen
                    or not broker.takes_in(tp, follower)
                ):
                    continue
                mine = other.driver.broker.hosted.get(tp) if other.driver.broker.fetches(tp) else None
                if mine and mine.value.leader == n and (is_free or mine.value.leader_epoch == held.value.leader_epoch):
                    yield follower, tp


def shrink(world: World, leader: int, partition: str, follower: int) -> None:
    """A follower has not caught up for too long: its leader wants it out of the ISR."""
    driver = world.processes[leader].driver
    driver.enqueue(ReplicaLags(TopicPartition.parse(partition), follower), None, "requests")
    begin_if_idle(world, leader)


def fire(world: World, n: int, timer: str) -> None:
    driver = world.processes[n].driver
    if world.is_simulated:
        world.now_ms = max(world.now_ms, driver.timers[timer].at_ms)
    driver.fire(timer)
