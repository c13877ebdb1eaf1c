"""ZkClient's thread where it stands before an event thread: it looks again at what has changed, and lets listeners queue events.

What is read here is what the event thread works from, however old it has become by then: names, or who rules.
Source: the listeners at the end of KafkaController.scala (0.11, 1.0), KafkaHealthcheck.SessionExpireListener (1.0); ZkClient.java
(0.10): fireDataChangedEvents, fireChildChangedEvents, fireNewSessionEvents.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kcontrol import events as e
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.listeners_0_8 import children_of, data_of
from kcontrol.effects import Enqueue, Handler, Znode
from kcontrol.registration import register
from kcontrol.znodes import BrokerEndpoint, decode_controller, decode_partition_list, parse_state_path

Found = Any  # the names of the children, or the znode, or None where the path is gone
Call = Callable[[Found, dict[str, str]], e.Event | None]


def _controller(znode: Znode | None, _: dict[str, str]) -> e.Event:
    return e.Reelect() if znode is None else e.ControllerChange(decode_controller(znode.data))


def _preferred(znode: Znode | None, _: dict[str, str]) -> e.Event | None:
    return None if znode is None else e.ReplicaLeaderElection(partitions=decode_partition_list(znode.data))


def _moved(path: str) -> e.Event | None:
    found = parse_state_path(path)
    return e.PartitionReassignmentIsrChange(found) if found else None


# fmt: off
CALLS: tuple[tuple[str, str, Call], ...] = (
    # to its      path                                   what the listener queues, if anything
    ("data",      r"/controller",                        _controller),
    ("children",  r"/brokers/ids",                       lambda names, _: e.BrokerChange()),
    ("children",  r"/brokers/topics",                    lambda names, _: e.TopicChange(names)),
    ("data",      r"/brokers/topics/(?P<topic>[^/]+)",   lambda znode, said: znode and e.PartitionModifications(said["topic"])),
    ("children",  r"/admin/delete_topics",               lambda names, _: e.TopicDeletion(names)),
    ("data",      r"/admin/reassign_partitions",         lambda znode, _: znode and e.ZkPartitionReassignment()),
    ("data",      r"(?P<path>/brokers/topics/[^/]+/partitions/\d+/state)",
                                                         lambda znode, said: znode and _moved(said["path"])),
    ("data",      r"/admin/preferred_replica_election",  _preferred),
    ("children",  r"/isr_change_notification",           lambda names, _: e.IsrChangeNotification(names)),
    ("children",  r"/log_dir_event_notification",        lambda names, _: e.LogDirEventNotification(names)),
)
# fmt: on
_PATTERNS = tuple((to, re.compile(pattern), call) for to, pattern, call in CALLS)


def is_called(path: str, *, children: bool) -> bool:
    """Whether there can be a listener to this path, or to its children."""
    return any((to == "children") == children and pattern.fullmatch(path) for to, pattern, _ in _PATTERNS)


def path_changed(ctx: ControllerContext, event: e.PathChanged) -> Handler:
    """Watch the path again, read it, and queue what the listener to it makes of that.

    Raises MalformedZnode for what a listener cannot read: then nothing is queued.
    """
    found: Found = yield from (children_of if event.children else data_of)(event.path)
    for to, pattern, call in _PATTERNS:
        match = pattern.fullmatch(event.path) if (to == "children") == event.children else None
        queued = call(found, match.groupdict()) if match else None
        if queued is not None:
            yield Enqueue(queued)


def new_session(ctx: ControllerContext, event: e.NewSession) -> Handler:
    """The controller's listener to sessions: who rules is looked at again, by the event thread."""
    yield Enqueue(e.Reelect())


def register_broker(ctx: ControllerContext, event: e.RegisterBroker) -> Handler:
    """The broker's listener to sessions, on this thread: the registration went with the session, so make another."""
    yield from register(ctx.rules, ctx.broker_id, BrokerEndpoint(event.host, event.port), event.timestamp_ms, event.session)
