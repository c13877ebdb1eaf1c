"""The actions that run a thread's next step, fire a timer, or deliver a watch event, a request or a follower's fetch.

Fetches here copy no records: they only let a leader see which followers have caught up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kcontrol.broker.events import LeaderAndIsrRequest, ReplicaCaughtUp, ReplicaLags
from kcontrol.cluster import delayed_responses
from kcontrol.controller.handlers import event_for_notification, has_handler
from kcontrol.core.effects import WatchEvent
from kcontrol.core.model import PartitionReplica, TopicPartition
from kcontrol.core.znodes import parent, state_path
from kcontrol.journal.journal import Record, RecordId

if TYPE_CHECKING:
    from kcontrol.cluster.world import World


def is_reachable(world: World, broker: int) -> bool:
    """Return whether the broker's process runs and is not frozen."""
    p = world.processes.get(broker)
    return p is not None and not p.frozen


# ---------------------------------------------------------------- threads and watch events


def begin(world: World, n: int, thread: str) -> None:
    world.processes[n].driver.begin(thread)


def advance(world: World, n: int, thread: str) -> None:
    world.processes[n].driver.advance(thread)


def deliver_notification(world: World, n: int) -> None:
    """Take the oldest watch event that waits at broker `n`, and queue the controller's event for it.

    If no handler is registered for the path, drop the watch event. Raises IndexError if none waits.
    """
    p = world.processes[n]
    watch_event, record = p.notifications.popleft()
    design = p.driver.controller.design
    handled = has_handler(*watch_event, design, p.driver.znode_handlers)
    event = event_for_notification(*watch_event, design) if handled else None
    if event is None:
        p.driver.log("drop_notification", record, type=watch_event.type, path=watch_event.path)
    else:
        p.driver.enqueue(event, record, is_watch_event=True)


# ---------------------------------------------------------------- requests


def is_deliverable(world: World, sender: int, receiver: int) -> bool:
    """Raises IndexError for an empty channel."""
    first = world.network.channels[sender, receiver][0]
    # A frozen sender sends nothing; a request of a closed connection is in the receiver's socket already.
    sends = sender not in world.processes or first.is_orphaned or is_reachable(world, sender)
    if not (is_reachable(world, receiver) and sends):
        return False
    # While the receiver delays a response, Kafka holds its replica lock.
    return not delayed_responses.is_locked(world, receiver, first.api)


def is_sender_alive(world: World, sender: int, receiver: int) -> bool:
    """Whether the sender of the oldest waiting request still exists, frozen or not, with its connection."""
    p = world.processes.get(sender)
    first = world.network.channels[sender, receiver][0]
    return p is not None and not first.is_orphaned and p.driver.incarnation == first.record.incarnation


def begin_if_idle(world: World, n: int, thread: str = "requests") -> None:
    driver = world.processes[n].driver
    if is_reachable(world, n) and driver.can_begin(driver.threads[thread]):
        driver.begin(thread)


def deliver_request(world: World, sender: int, receiver: int) -> None:
    """An idle thread `requests` handles the request at once."""
    queued = world.network.channels[sender, receiver][0]
    event = world.network.request_event((sender, receiver))
    driver = world.processes[receiver].driver
    record = driver.log("receive", queued.record, api=queued.api, sender=sender)
    if isinstance(event, LeaderAndIsrRequest):
        delayed_responses.record_fetches(world, driver, event.correlation_id, record)
    driver.enqueue(event, record, "requests")
    begin_if_idle(world, receiver)


def drop_request(world: World, sender: int, receiver: int) -> None:
    """The connection breaks; the request stays in the channel, so that `sender` can send it again."""
    queued = world.network.channels[sender, receiver][0]
    world.log("drop_request", queued.record, sender=sender, receiver=receiver, api=queued.api)


def duplicate_request(world: World, sender: int, receiver: int) -> None:
    """The response is lost with the connection, so the receiver handles the request once more later."""
    queued = world.network.channels[sender, receiver][0]
    world.log("duplicate_request", queued.record, sender=sender, receiver=receiver, api=queued.api)
    world.network.channels[sender, receiver].appendleft(queued)
    deliver_request(world, sender, receiver)


def fetch(world: World, follower: int, partition: str) -> None:
    """Queue the event ReplicaCaughtUp at a follower's leader, whose handler adds the follower to the ISR."""
    tp = TopicPartition.parse(partition)
    leader = world.processes[world.processes[follower].driver.broker.hosted[tp].leadership.leader].driver
    leader.enqueue(ReplicaCaughtUp(tp, follower), None, "requests")
    begin_if_idle(world, leader.node)


def fetches(world: World) -> Iterator[tuple[int, TopicPartition]]:
    """Yield (follower, partition) for each follower outside the ISR whose next fetch adds the follower to the ISR.

    The follower fetches from the partition's leader, and neither broker is frozen.
    """
    for n, p in sorted(world.processes.items()):
        broker = p.driver.broker
        ignores_epoch = not broker.rules.fenced_fetches
        for tp, held in p.driver.under_replicated.items() if not p.frozen else ():
            # In 0.8.0 a leader also adds brokers that are not among the partition's replicas (KAFKA-1097).
            others = sorted(world.processes) if broker.rules.accepts_unassigned_partitions else []
            for follower in (*held.replicas, *(b for b in others if b not in held.replicas)):
                other = world.processes.get(follower)
                if follower == n or follower in held.leadership.isr or other is None or other.frozen:
                    continue
                if not broker.is_replica_isr_eligible(tp, follower) or not other.driver.broker.is_fetching(tp):
                    continue
                mine = other.driver.broker.hosted.get(tp)
                epoch = mine.leadership.leader_epoch if mine and mine.leadership.leader == n else None
                if epoch is not None and (ignores_epoch or epoch == held.leadership.leader_epoch):
                    yield follower, tp


def shrink_isr(world: World, leader: int, partition: str, follower: int) -> None:
    """Queue the event ReplicaLags at a leader, whose handler removes the follower from the ISR."""
    world.processes[leader].driver.enqueue(ReplicaLags(TopicPartition.parse(partition), follower), None, "requests")
    begin_if_idle(world, leader)


def fire_timer(world: World, n: int, timer: str) -> None:
    driver = world.processes[n].driver
    if world.is_simulated:
        world.now_ms = max(world.now_ms, driver.timers[timer].at_ms)
    driver.fire(timer)


# ---------------------------------------------------------------- the write that made a watch fire


def cause_of_notification(step: Sequence[Record], event: WatchEvent) -> RecordId | None:
    """Return the id of the latest record in `step` whose write fired the watch event `event`, None if there is no such record.

    `step` has the journal records of one step. The creation or deletion of a child fires NodeChildrenChanged.
    """
    by_children = event.type == "NodeChildrenChanged"
    for record in step[::-1]:
        for path, is_set in _written_paths(record):
            if by_children and parent(path) == event.path and not is_set:
                return record.id
            if not by_children and path == event.path:
                return record.id
    return None


def _written_paths(record: Record) -> Iterator[tuple[str, bool]]:
    """Yield (path, is_set) for each write in a journal record; `is_set` is False for a creation or deletion."""
    fields = record.fields
    if record.kind == "write" and fields["error"] is None:
        for op in fields["ops"]:
            yield op[1], op[0] == "set"
    elif record.kind == "change" and fields["write"]:
        subject = fields["subject"]
        tp = subject.topic_partition if isinstance(subject, PartitionReplica) else TopicPartition(*subject)
        yield state_path(tp), fields["write"] == "set"
    elif record.kind == "close":
        for path in fields["deleted"]:
            yield path, False
