"""Consumers that run by themselves in virtual time: the next action when the brokers have no routine action left.

Routine actions, such as steps of threads and deliveries of requests, are listed by `actions.routine_actions`. A consumer sends
the requests of its state: JoinGroup, then SyncGroup, then a heartbeat each `heartbeat.interval.ms`. After an error it waits for
`retry.backoff.ms`. Where no broker knows the offsets topic, the consumer sends FindCoordinator, which creates the topic. A
consumer that does not poll sends heartbeats, and leaves the group after `max.poll.interval.ms`. Between two requests virtual time
passes (`wait`), and deadlines of coordinators fire on the way, in the order of their times.

All groups are at rest if consumers have only heartbeats to send and each pending deadline belongs to a member with heartbeats.
The periodic search for expired offsets fires on the way; a run ends although the next search is pending. Timers of other threads,
such as the check of preferred leaders, do not fire here.

Source: AbstractCoordinator.java: HeartbeatThread.run, ensureActiveGroup, Heartbeat.java (0.10.1, 2.8).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kcontrol.broker.broker_configs import LARGEST_INT
from kcontrol.cluster import consumer_clients
from kcontrol.cluster.admin_actions import new_offsets_topic
from kcontrol.cluster.consumer_configs import HEARTBEAT_MS, POLL_MS
from kcontrol.cluster.consumer_state import CLOSED, COMPLETING, FROZEN, POLLING, STABLE, STUCK, UNREADABLE, Consumer
from kcontrol.cluster.delivery import is_reachable
from kcontrol.group import events as e
from kcontrol.group.handlers import REQUESTS
from kcontrol.group.offset_expiration import EXPIRY_TIMER

if TYPE_CHECKING:
    from kcontrol.cluster.world import Action, World

BACKOFF_MS = 100
"""retry.backoff.ms, which is 100 in all releases."""
FATAL = (
    "INVALID_GROUP_ID", "INCONSISTENT_GROUP_PROTOCOL", "INVALID_SESSION_TIMEOUT", "GROUP_MAX_SIZE_REACHED", "FENCED_INSTANCE_ID",
)  # fmt: skip
"""The errors that poll throws to the application: the consumer sends nothing more."""
AT_ONCE = ("", "NONE", "MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "disconnected")
"""The errors after which a consumer sends its next request without a wait."""


class Due(NamedTuple):
    """A coming action of a consumer, such as a heartbeat, or the coming firing of a coordinator's timer.

    `at_ms` is the time of the action or the firing.
    """

    at_ms: int
    # Such as ("heartbeat", "anna"), or ("fire_timer", broker, timer).
    action: Action
    # True: the action leaves all groups unchanged as long as consumers send heartbeats, so a run can end before the action. Such
    # actions are a heartbeat and the session timeout of a member that sends heartbeats.
    keeps: bool = False


def can_wait(world: World, ms: object) -> bool:
    """Time is virtual with the ZooKeeper in memory only."""
    return consumer_clients.is_number(ms, 1, LARGEST_INT) and world.is_simulated


def wait(world: World, ms: int) -> None:
    """Advance the clock by `ms` milliseconds; a timer that becomes due fires in a later step."""
    world.log("act", None, action=["wait", ms])
    # The step itself advances the clock by 1 ms.
    world.now_ms += ms - 1


def next_action(world: World, end_ms: int | None = None) -> Action | None:
    """Return the next action: that of a consumer, ("wait", ms) until this is due, or ("fire_timer", broker, timer).

    Return None at the time `end_ms`. If `end_ms` is None, return None once only endless actions, such as heartbeats, are left.
    """
    # Heartbeats, and timers that change no group (`Due.keeps`), can go on without end.
    due = sorted((*_requests(world), *_deadlines(world)), key=lambda item: item.at_ms)
    if end_ms is None and all(item.keeps for item in due):
        return None
    now_ms = world.now_ms
    first = due[0] if due else None
    if first is None or (end_ms is not None and max(first.at_ms, now_ms) >= end_ms):
        return ("wait", end_ms - now_ms) if end_ms is not None and end_ms > now_ms else None
    if first.at_ms > now_ms and first.action[0] != "fire_timer":
        return ("wait", first.at_ms - now_ms)
    return first.action


def _requests(world: World) -> Iterator[Due]:
    for name, consumer in world.consumers.items():
        if consumer.condition == FROZEN and consumer.thaws_at_ms is not None:
            yield Due(consumer.thaws_at_ms, ("thaw_consumer", name))
        elif _is_active(world, name, consumer):
            yield from _of_stuck(world, name, consumer) if consumer.condition == STUCK else (_of_polling(world, name, consumer),)
        elif consumer.condition == POLLING and consumer.asked is None and consumer.error not in FATAL:
            yield from _of_searching(world, name, consumer)


def _of_searching(world: World, name: str, consumer: Consumer) -> Iterator[Due]:
    """FindCoordinator goes to the first reachable broker, which creates a missing offsets topic if it can."""
    reachable = [n for n in sorted(world.processes) if is_reachable(world, n)]
    if reachable and all(consumer_clients.named_by(world, n, consumer.group) is None for n in reachable):
        at_ms = consumer.active_at_ms + (0 if consumer.error in AT_ONCE else BACKOFF_MS)
        # A broker that cannot create the topic gives the response COORDINATOR_NOT_AVAILABLE without end.
        keeps = consumer.error == consumer_clients.NOT_AVAILABLE and new_offsets_topic(world, reachable[0]) is None
        yield Due(at_ms, ("find_coordinator", name, reachable[0]), keeps)


def _of_polling(world: World, name: str, consumer: Consumer) -> Due:
    at_ms = consumer.active_at_ms + (0 if consumer.error in AT_ONCE else BACKOFF_MS)
    if consumer.state == COMPLETING and not consumer.rejoin_needed:
        return Due(at_ms, ("sync", name))
    if consumer.state != STABLE or consumer.rejoin_needed:
        return Due(at_ms, ("join", name))
    return _heartbeat(world, name, consumer)


def _heartbeat(world: World, name: str, consumer: Consumer) -> Due:
    at_ms = consumer.active_at_ms + consumer_clients.consumer_config(world.settings, name)[HEARTBEAT_MS]
    return Due(at_ms, ("heartbeat", name), keeps=not consumer.error or consumer.error == "NONE" or consumer.condition == STUCK)


def _of_stuck(world: World, name: str, consumer: Consumer) -> Iterator[Due]:
    if not consumer.member_id:
        return
    yield _heartbeat(world, name, consumer)
    if consumer_clients.has_poll_timeout(world, name):
        ends_ms = consumer.polled_at_ms + consumer_clients.consumer_config(world.settings, name)[POLL_MS]
        yield Due(ends_ms, ("expire_poll_interval", name))


def _deadlines(world: World) -> Iterator[Due]:
    for n, p in sorted(world.processes.items()):
        for name, timer in sorted(p.driver.timers.items()) if not p.frozen else ():
            if name == EXPIRY_TIMER:
                yield Due(timer.at_ms, ("fire_timer", n, name), keeps=True)
            elif timer.thread == REQUESTS and not timer.periodic:
                yield Due(timer.at_ms, ("fire_timer", n, name), keeps=_is_renewed(world, timer.event))


def _is_renewed(world: World, event: Any) -> bool:
    """Return whether `event`, the event of a timer, is the session timeout of a member whose consumer sends heartbeats."""
    if not isinstance(event, e.SessionTimedOut):
        return False
    member = event.group_id, event.member_id
    holders = ((name, consumer) for name, consumer in world.consumers.items() if (consumer.group, consumer.member_id) == member)
    return any(_is_active(world, name, consumer) for name, consumer in holders)


def _is_active(world: World, name: str, consumer: Consumer) -> bool:
    """Return whether a consumer sends requests by itself: it runs, can send, and no error has ended its requests."""
    # A consumer that cannot read its assignment no longer polls; only a heartbeat thread (0.10.1 on, KIP-62) still sends.
    if consumer.error == UNREADABLE and consumer.condition == STUCK and not consumer_clients.has_poll_timeout(world, name):
        return False
    return (
        consumer.condition not in (FROZEN, CLOSED) and consumer.error not in FATAL and consumer_clients.can_send(world, consumer)
    )


# ---------------------------------------------------------------- faults of a consumer's process: a freeze, or no more polls


def can_freeze(world: World, name: str, for_ms: object = None) -> bool:
    """`for_ms` None: a freeze without a given end."""
    is_legal = for_ms is None or consumer_clients.is_number(for_ms, 1, LARGEST_INT)
    return is_legal and consumer_clients.is_consumer(world, name) and world.consumers[name].condition != FROZEN


def freeze(world: World, name: str, for_ms: int | None = None) -> None:
    """As SIGSTOP: no heartbeat either. After `for_ms`, `next_action` proposes the end of the freeze."""
    ends = None if for_ms is None else world.clock() + for_ms
    words = [] if for_ms is None else [for_ms]
    cause = world.log("act", None, action=["freeze_consumer", name, *words])
    consumer_clients.note(world, name, world.consumers[name]._replace(condition=FROZEN, thaws_at_ms=ends), cause)


def can_thaw(world: World, name: str) -> bool:
    return consumer_clients.is_consumer(world, name) and world.consumers[name].condition == FROZEN


def thaw(world: World, name: str) -> None:
    """Let a frozen consumer continue, as SIGCONT does, with the member id and the generation in its state."""
    cause = world.log("act", None, action=["thaw_consumer", name])
    consumer_clients.note(world, name, world.consumers[name]._replace(condition=POLLING, thaws_at_ms=None), cause)


def can_start_polling(world: World, name: str) -> bool:
    """Whether a consumer has stopped polling, or has left its group by LeaveGroup (closed)."""
    return consumer_clients.is_consumer(world, name) and world.consumers[name].condition in (STUCK, CLOSED)


def start_polling(world: World, name: str) -> None:
    """Let a consumer poll again. A closed one has no member id any more: it joins as a new member."""
    cause = world.log("act", None, action=["start_polling", name])
    consumer_clients.note(world, name, world.consumers[name]._replace(condition=POLLING), cause)


def can_stop_polling(world: World, name: str) -> bool:
    """Return whether there is this consumer and it polls now: it is not frozen or closed, and has not stopped polling."""
    return consumer_clients.is_consumer(world, name) and world.consumers[name].condition == POLLING


def stop_polling(world: World, name: str) -> None:
    """Let a consumer stop calling poll: its heartbeats go on, and it takes part in no rebalance."""
    # Before 0.10.1 (KIP-62) poll sends the heartbeats of Kafka's consumer; there it stands for another client with a heartbeat
    # thread.
    cause = world.log("act", None, action=["stop_polling", name])
    consumer_clients.note(world, name, world.consumers[name]._replace(condition=STUCK, polled_at_ms=world.clock()), cause)
