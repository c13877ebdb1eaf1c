"""The reasons why an action is not possible now, as sentences for error messages.

`find_action` calls these functions. A function returns "" if it has no particular reason; then the error lists the possible
actions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kcontrol.broker.broker_configs import LARGEST_INT
from kcontrol.cluster import admin_actions, consumer_clients, data_plane, delivery
from kcontrol.cluster.consumer_state import CLOSED, FROZEN, POLLING, STUCK
from kcontrol.cluster.sessions import OPEN
from kcontrol.core.errors import listed
from kcontrol.core.model import TopicPartition
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC, partition_for

if TYPE_CHECKING:
    from kcontrol.cluster.world import World

LISTED = 30  # the most legal values in one sentence
REMEDIES = {POLLING: "freeze it, or stop its polling, first", FROZEN: "thaw it first, with ('thaw_consumer', {})"}
REMEDIES |= dict.fromkeys((STUCK, CLOSED), "let it poll first, with ('start_polling', {})")


def _names(names: Iterable[Any]) -> str:
    return listed(names, LISTED) or "none"


# ---------------------------------------------------------------- brokers


def is_id(n: object) -> bool:
    """Return whether `n` can be a broker id: an int from 0 on, and no bool."""
    return isinstance(n, int) and not isinstance(n, bool) and n >= 0


def _running(world: World) -> str:
    return f"running brokers: {_names(sorted(world.processes))}" if world.processes else "no broker is running"


def start(world: World, n: object) -> str:
    return f"Broker {n} is running already; {_running(world)}" if is_id(n) else f"A broker's id is a number from 0 on, not {n!r}"


def unreachable(world: World, n: Any, *_: object) -> str:
    """Empty if the broker runs and is not frozen."""
    if not is_id(n) or n not in world.processes:
        return f"Broker {n!r} is not running; {_running(world)}"
    return "" if delivery.is_reachable(world, n) else f"Broker {n} is frozen: thaw it first, with ('thaw', {n})"


def thaw(world: World, n: Any) -> str:
    return f"Broker {n} is not frozen" if is_id(n) and n in world.processes else unreachable(world, n)


def fire_timer(world: World, n: Any, timer: object) -> str:
    return (
        unreachable(world, n)
        or f"Broker {n} has no timer {timer!r}; its timers are {_names(sorted(world.processes[n].driver.timers))}"
    )


def expire_session(world: World, n: object) -> str:
    open_sessions = {n for n, p in world.processes.items() if p.session is OPEN} | set(world.orphaned_sessions)
    return f"Broker {n!r} has no open session that can expire; brokers with an open session: {_names(sorted(open_sessions))}"


# ---------------------------------------------------------------- replicas, requests and records


def break_channel(world: World, sender: object, receiver: object) -> str:
    waiting = (f"{by} to {to}" for by, to in sorted(world.network.deliverable()))
    return f"No request is on its way from {sender} to {receiver}; requests are on their way from {_names(waiting)}"


def shrink_isr(world: World, leader: Any, partition: str, follower: object) -> str:
    """Return why a leader cannot remove a follower from the ISR; to be called only if it cannot."""
    hosted = world.processes[leader].driver.broker.hosted if delivery.is_reachable(world, leader) else {}
    held = hosted.get(TopicPartition.parse(partition))
    others = [b for b in held.leadership.isr if b != leader] if held and held.leadership.leader == leader else []
    if follower not in others:
        return (
            f"Broker {follower} cannot leave the ISR of {partition}; leader {leader} can remove these brokers: {_names(others)}"
        )
    if held and held.pending_isr:
        return f"Leader {leader} of {partition} waits for the response to its last AlterIsr: run the cluster first"
    return f"Broker {follower} has all records of {partition}: freeze it and produce a record, then it lags"


def produce(world: World, leader: Any, *_: object) -> str:
    return unreachable(world, leader) or "Brokers keep logs only in a world with data=True"


def fail_log_dir(world: World, n: Any, partition: str) -> str:
    if missing := unreachable(world, n):
        return missing
    hosted = sorted(world.processes[n].driver.broker.hosted)
    return f"Broker {n} has no replica of {partition!r}; its replicas: {_names(hosted)}"


def lose_tail(world: World, n: Any, partition: str, offset: object) -> str:
    """Either the broker runs, or it has no record at this offset."""
    if n in world.processes:
        return f"Broker {n} is running: only a stopped broker can lose records that were not flushed; kill it first"
    found = ((b, logs.get(TopicPartition.parse(partition))) for b, logs in data_plane.replicas(world).items())
    ends = _names(f"{b} to {log.log_end_offset}" for b, log in found if log is not None)
    return f"Broker {n} has no record at offset {offset!r} of {partition}; log end offsets: broker {ends}"


def clean_log(world: World, n: Any, partition: str) -> str:
    """Return why the log cleaner of broker `n` does not clean the log of a partition; to be called only if it does not."""
    if missing := unreachable(world, n):
        return missing
    found = data_plane.log_to_clean(world, n, partition)
    if found is None:
        return (
            f"Broker {n} has no log of {partition!r} to clean: the cleaner cleans partitions of {OFFSETS_TOPIC} if the topic has "
            "segment.bytes; without this setting the log is one segment, which is active"
        )
    dirty, total = found.cleanable_bytes, found.clean_bytes + found.cleanable_bytes
    return (
        f"The log cleaner of broker {n} leaves {partition} alone: {dirty} of the {total} bytes of its closed segments are new "
        "since the last cleaning, and more than half must be (min.cleanable.dirty.ratio)"
    )


# ---------------------------------------------------------------- consumers and topics


def ask(world: World, name: str, broker: Any = None) -> str:
    """Why a consumer cannot send a request to `broker`, by default to its coordinator."""
    if missing := _consumer(world, name):
        return missing
    consumer = world.consumers[name]
    if consumer.condition == FROZEN:
        return process(world, name)
    if consumer.asked is not None:
        return f"Consumer {name} waits for the response to its last request: run the cluster first"
    return no_coordinator(world, consumer.group) if broker is None else unreachable(world, broker)


def commit(world: World, name: str, *_: object) -> str:
    return ask(world, name)


def expire_poll(world: World, name: str) -> str:
    if missing := _consumer(world, name):
        return missing
    group, release = world.consumers[name].group, world.settings.release
    if not consumer_clients.has_poll_timeout(world, name):
        return f"Consumers of Kafka {release} have no max.poll.interval.ms, which came in 0.10.1: play a later one"
    if not world.consumers[name].member_id:
        return f"Consumer {name} is not a member of group {group}, so no poll can time out: let it join first"
    return ask(world, name)


def no_coordinator(world: World, group: str) -> str:
    """Return why no reachable broker is the coordinator of the group. Call it only if this is so."""
    known = {tp for p in world.processes.values() for tp in p.driver.broker.metadata if tp.topic == OFFSETS_TOPIC}
    many = consumer_clients.config(world.settings).partitions
    own = TopicPartition(OFFSETS_TOPIC, partition_for(group, many))
    if world.processes and not known:
        remedy = "let a consumer send FindCoordinator to one, which creates the topic"
        return f"Group {group} has no coordinator, because no broker knows a topic {OFFSETS_TOPIC}: {remedy}"
    if world.processes and own not in known:
        reason = f"no broker knows a partition {own}; the brokers count with offsets.topic.num.partitions {many}"
        return f"Group {group} has no coordinator, because {reason}: create {OFFSETS_TOPIC} with {many} partitions"
    return f"Group {group} has no coordinator that can be reached: start or thaw a broker, then run the cluster"


def _consumer(world: World, name: object) -> str:
    """Return an error sentence if there is no consumer of this name, else ""."""
    if consumer_clients.is_consumer(world, name):
        return ""
    there = f"the consumers of this run: {_names(world.consumers)}" if world.consumers else "this run has none"
    return f"There is no consumer {name!r}; {there}"


def find_coordinator(world: World, name: str, broker: int) -> str:
    return _consumer(world, name) or unreachable(world, broker) or ask(world, name)


def freeze_consumer(world: World, name: str, *ms: object) -> str:
    if ms and ms[0] is not None and not consumer_clients.is_number(ms[0], 1, LARGEST_INT):
        return f"A consumer can be frozen for a whole number of milliseconds from 1 on, at most {LARGEST_INT}, not for {ms[0]!r}"
    return process(world, name)


def process(world: World, name: str) -> str:
    """Why the process of a consumer cannot be frozen or thawed, or stop or start polling, in its present condition."""
    if missing := _consumer(world, name):
        return missing
    condition = world.consumers[name].condition
    return f"Consumer {name} is {condition}: {REMEDIES[condition].format(repr(name))}"


def wait(world: World, ms: object) -> str:
    if not consumer_clients.is_number(ms, 1, LARGEST_INT):
        return f"A wait lasts a whole number of milliseconds from 1 on, at most {LARGEST_INT}, not {ms!r}"
    return "Time passes by itself in a world with a real ZooKeeper: only in the simulated world can it pass by an action"


def alter_topic(world: World, topic: str, *_: object) -> str:
    """Return the sentence that the topic does not exist; "" if it exists."""
    there = sorted(admin_actions.topics(world))
    missing = f"There is no topic {topic!r}; {f'the topics are {_names(there)}' if there else 'no topic exists yet'}"
    return "" if topic in there else missing


def delete_topic(world: World, topic: str) -> str:
    if missing := alter_topic(world, topic):
        return missing
    return f"The deletion of {topic} has been requested already: run the cluster, so that the controller performs it"
