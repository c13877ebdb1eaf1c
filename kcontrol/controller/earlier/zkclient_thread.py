"""The controller's listeners on ZkClient's thread, in 0.11 and 1.0.

A listener reads the changed path and queues an event. ZooKeeper's data may have changed again when
the event is handled.

Source: the listeners at the end of KafkaController.scala (0.11, 1.0),
KafkaHealthcheck.SessionExpireListener (1.0); ZkClient.java (0.10): fireDataChangedEvents,
fireChildChangedEvents, fireNewSessionEvents.
"""

import re
from collections.abc import Callable
from typing import Any

from kcontrol.broker.registration import create_broker_znode
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.earlier.listener_handlers import children_of, data_of
from kcontrol.controller.earlier.listeners_to_0_10 import HANDLER_KINDS
from kcontrol.core import events as e
from kcontrol.core import znodes as zk
from kcontrol.core.effects import Enqueue, Handler, Znode

Found = Any  # the names of the children, or the znode, or None where the path is gone
Call = Callable[[Found, dict[str, str]], e.Event | None]


def _controller(znode: Znode | None, _: dict[str, str]) -> e.Event:
    return e.Reelect() if znode is None else e.ControllerChange(zk.decode_controller(znode.data))


def _preferred(znode: Znode | None, _: dict[str, str]) -> e.Event | None:
    if znode is None:
        return None
    return e.ReplicaLeaderElection(partitions=zk.decode_partition_list(znode.data))


def _reassignment(znode: Znode | None, _: dict[str, str]) -> e.Event | None:
    return None if znode is None else e.ZkPartitionReassignment()


def _topic(znode: Znode | None, names: dict[str, str]) -> e.Event | None:
    return None if znode is None else e.PartitionModifications(names["topic"])


def _moved(znode: Znode | None, names: dict[str, str]) -> e.Event | None:
    found = zk.parse_state_path(names["path"]) if znode else None
    return e.PartitionReassignmentIsrChange(found) if found else None


# fmt: off
CALLS: tuple[tuple[str, str, Call], ...] = (
    # to its    path                                   what the listener queues, if anything
    ("data",     r"/controller",                        _controller),
    ("children", r"/brokers/ids",                       lambda names, _: e.BrokerChange()),
    ("children", r"/brokers/topics",                    lambda names, _: e.TopicChange(names)),
    ("data",     r"/brokers/topics/(?P<topic>[^/]+)",   _topic),
    ("children", r"/admin/delete_topics",               lambda names, _: e.TopicDeletion(names)),
    ("data",     r"/admin/reassign_partitions",         _reassignment),
    ("data",     r"(?P<path>/brokers/topics/[^/]+/partitions/\d+/state)", _moved),
    ("data",     r"/admin/preferred_replica_election",  _preferred),
    ("children", r"/isr_change_notification",
        lambda names, _: e.IsrChangeNotification(names)),
    ("children", r"/log_dir_event_notification",
        lambda names, _: e.LogDirEventNotification(names)),
)
# fmt: on
_PATTERNS = tuple((to, re.compile(pattern), call) for to, pattern, call in CALLS)


def event_of(notification: str, path: str) -> e.Event | None:
    """PathChanged if a listener waits for this type and path."""
    for to, pattern, _ in _PATTERNS:
        if (to == "children") in HANDLER_KINDS[notification] and pattern.fullmatch(path):
            return e.PathChanged(path, children=to == "children")
    return None


def path_changed(ctx: ControllerContext, event: e.PathChanged) -> Handler:
    """Set the watch of the path again, read the path, and queue the event of its listener.

    Raises MalformedZnode where the listener cannot read the znode: then no event is queued.

    Source: ZkClient.fireDataChangedEvents, fireChildChangedEvents (0.10).
    """
    found: Found = yield from (children_of if event.children else data_of)(event.path)
    for to, pattern, call in _PATTERNS:
        match = pattern.fullmatch(event.path) if (to == "children") == event.children else None
        queued = call(found, match.groupdict()) if match else None
        if queued is not None:
            yield Enqueue(queued)


def new_session(ctx: ControllerContext, event: e.NewSession) -> Handler:
    """Queue Reelect after a new session: the event thread then reads `/controller` again.

    Source: KafkaController.SessionExpirationListener (0.11, 1.0).
    """
    yield Enqueue(e.Reelect())


def register_broker(ctx: ControllerContext, event: e.RegisterBroker) -> Handler:
    """Register the broker again, on ZkClient's thread: the old registration ended with the session.

    Source: KafkaHealthcheck.SessionExpireListener (1.0).
    """
    rules, endpoint = ctx.rules, zk.BrokerEndpoint(event.host, event.port)
    at_ms, session = event.timestamp_ms, event.session
    yield from create_broker_znode(rules, ctx.broker_id, endpoint, at_ms, session)
