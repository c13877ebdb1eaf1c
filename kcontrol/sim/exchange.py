"""What passes between threads, brokers and ZooKeeper: watch events, requests, questions, fetches, timers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kcontrol.controller.handlers import event_of, listens
from kcontrol.events import (
    AlterIsrReceived,
    AlterIsrResponse,
    ControlledShutdown,
    ControlledShutdownResponse,
    Event,
    LeaderAndIsrRequest,
    ReplicaCaughtUp,
    ReplicaLags,
)
from kcontrol.model import TopicPartition
from kcontrol.runtime.driver import Driver
from kcontrol.runtime.journal import RecordId
from kcontrol.sim import held_answers
from kcontrol.sim.network import Question

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


# ---------------------------------------------------------------- requests and questions


def travels(world: World, sender: int, receiver: int) -> bool:
    """Whether the first request of this channel can be handled now by its receiver."""
    sends = sender not in world.processes or hears(world, sender)
    if not (hears(world, receiver) and sends):
        return False
    return not held_answers.is_locked(world, receiver, world.network.channels[sender, receiver][0].api)


def is_connected(world: World, sender: int, receiver: int) -> bool:
    """Whether the process lives that has sent the first request of this channel."""
    p = world.processes.get(sender)
    return p is not None and p.driver.incarnation == world.network.channels[sender, receiver][0].record.incarnation


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
        held_answers.note_fetches(world, driver, event.correlation_id, record)
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


def ask(world: World, n: int) -> None:
    """What a broker wants to know goes to whom it takes for the controller, all of one kind in one request."""
    driver = world.processes[n].driver
    pending = world.network.pending(n)
    target = whom(driver, pending[0])
    correlation_id = f"{n}.{driver.incarnation}-{pending[0].record.seq}-{pending[0].api}"
    together = [question for question in pending if (question.api, question.to) == (pending[0].api, pending[0].to)]
    body: dict[Any, Any] = {}
    for question in together:
        question.asked, question.correlation_id, question.refused_by = target, correlation_id, None
        body |= question.body
    event: Event
    if pending[0].api == "AlterIsr":
        event = AlterIsrReceived(correlation_id, n, driver.broker.broker_epoch, tuple(body.items()))
    else:
        event = ControlledShutdown(correlation_id, body["broker_id"], body["broker_epoch"])
    world.processes[target].driver.enqueue(event, pending[0].record)


def answer_question(world: World, by: Driver, correlation_id: str, body: Any, record: RecordId) -> None:
    """The controller's answer reaches the broker that asked; a refusal as a whole makes it ask again, when it knows better."""
    for n, questions in world.network.questions.items():
        asked = [q for q in questions if q.correlation_id == correlation_id]
        if not asked or n not in world.processes:
            continue
        driver = world.processes[n].driver
        if body is None:
            for question in asked:
                question.asked, question.correlation_id = -1, ""
            return
        if body["error"] != "NONE" and asked[0].api == "AlterIsr":
            for question in asked:
                question.asked, question.correlation_id = -1, ""
                question.refused_by = (by.node, driver.broker.controller_epoch)
            driver.log("refused", record, api=asked[0].api, error=body["error"])
            return
        world.network.settle(n, asked)
        world.log("told", record, broker=n, settled=[str(q.record) for q in asked])
        driver.enqueue(answer_event(asked[0].api, body), record, "requests")
        begin_if_idle(world, n)
        return


def answer_event(api: str, body: Any) -> Event:
    if api == "AlterIsr":
        return AlterIsrResponse(body["error"], tuple(body["partitions"].items()))
    return ControlledShutdownResponse(body["error"], tuple(body["partitions"]))


def whom(driver: Driver, question: Question) -> int:
    """The broker that a question goes to."""
    return driver.broker.controller_id if question.to is None else question.to


def may_ask(world: World, n: int) -> bool:
    pending = world.network.pending(n)
    if not pending or len(pending) < len(world.network.questions[n]):
        return False
    driver = world.processes[n].driver
    if not hears(world, whom(driver, pending[0])):
        return False
    return all(q.refused_by != (whom(driver, q), driver.broker.controller_epoch) for q in pending)


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
