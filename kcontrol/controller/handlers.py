"""Which handler answers which event, and how a watch event becomes one: two tables.

Source: ControllerEventManager's process in KafkaController.scala and the ZNodeChangeHandlers at its end (2.8).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from kcontrol import events
from kcontrol.controller import broker_changes, isr_changes, leadership, topic_changes
from kcontrol.controller import controlled_shutdown as goodbye
from kcontrol.controller import elections_on_request as requested
from kcontrol.controller.context import ControllerContext
from kcontrol.effects import ControllerMoved, Exists, Handler, Respond
from kcontrol.events import ControllerState as S
from kcontrol.znodes import REASSIGN_PARTITIONS


class Row(NamedTuple):
    """One event: the controller's state while it is handled, whether only an active controller looks at it, the handler."""

    state: S
    only_if_active: bool
    handler: Callable[[ControllerContext, Any], Handler]


def listen_again(path: str) -> Callable[[ControllerContext, Any], Handler]:
    """A handler that only sets the watch on `path` anew."""

    def handler(ctx: ControllerContext, event: Any) -> Handler:
        yield Exists((path,), watch=True)

    return handler


# fmt: off
HANDLERS: dict[type[events.Event], Row] = {
    # event                                      state                                  active?  handler
    events.Startup:                        Row(S.CONTROLLER_CHANGE,                 False, leadership.startup),
    events.ControllerChange:               Row(S.CONTROLLER_CHANGE,                 False, leadership.controller_change),
    events.Reelect:                        Row(S.CONTROLLER_CHANGE,                 False, leadership.reelect),
    events.RegisterBrokerAndReelect:       Row(S.CONTROLLER_CHANGE,                 False, leadership.register_and_reelect),
    events.Expire:                         Row(S.CONTROLLER_CHANGE,                 False, leadership.expire),
    events.BrokerChange:                   Row(S.BROKER_CHANGE,                     True,  broker_changes.broker_change),
    events.BrokerModifications:            Row(S.BROKER_CHANGE,                     True,  broker_changes.broker_modifications),
    events.TopicChange:                    Row(S.TOPIC_CHANGE,                      True,  topic_changes.topic_change),
    events.PartitionModifications:         Row(S.TOPIC_CHANGE,                      True,  topic_changes.partition_modifications),
    events.LeaderAndIsrResponseReceived:   Row(S.LEADER_AND_ISR_RESPONSE_RECEIVED,  True,  broker_changes.leader_and_isr_response_received),
    events.UpdateMetadataResponseReceived: Row(S.UPDATE_METADATA_RESPONSE_RECEIVED, True,  broker_changes.update_metadata_response_received),
    events.AlterIsrReceived:               Row(S.ISR_CHANGE,                        True,  isr_changes.alter_isr_received),
    events.IsrChangeNotification:          Row(S.ISR_CHANGE,                        True,  isr_changes.isr_change_notification),
    events.LogDirEventNotification:        Row(S.LOG_DIR_CHANGE,                    True,  broker_changes.log_dir_event_notification),
    events.ControlledShutdown:             Row(S.CONTROLLED_SHUTDOWN,               True,  goodbye.controlled_shutdown),
    events.ReplicaLeaderElection:          Row(S.MANUAL_LEADER_BALANCE,             True,  requested.replica_leader_election),
    events.AutoPreferredReplicaLeaderElection: Row(S.AUTO_LEADER_BALANCE,           True,  requested.auto_preferred_replica_leader_election),
    events.UncleanLeaderElectionEnable:    Row(S.UNCLEAN_LEADER_ELECTION_ENABLE,    True,  requested.unclean_leader_election_enable),
    events.TopicUncleanLeaderElectionEnable: Row(S.TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE, True, requested.topic_unclean_leader_election_enable),
    events.ZkPartitionReassignment:        Row(S.ALTER_PARTITION_REASSIGNMENT,      True,  listen_again(REASSIGN_PARTITIONS)),
}

WATCH_EVENTS: tuple[tuple[str, str, Callable[..., events.Event]], ...] = (
    # what ZooKeeper says    path                                   event
    ("NodeCreated",         r"/controller",                        events.ControllerChange),
    ("NodeDataChanged",     r"/controller",                        events.ControllerChange),
    ("NodeDeleted",         r"/controller",                        events.Reelect),
    ("NodeChildrenChanged", r"/brokers/ids",                       events.BrokerChange),
    ("NodeDataChanged",     r"/brokers/ids/(?P<broker_id>\d+)",    events.BrokerModifications),
    ("NodeChildrenChanged", r"/brokers/topics",                    events.TopicChange),
    ("NodeDataChanged",     r"/brokers/topics/(?P<topic>[^/]+)",   events.PartitionModifications),
    ("NodeChildrenChanged", r"/admin/delete_topics",               events.TopicDeletion),
    ("NodeCreated",         r"/admin/reassign_partitions",         events.ZkPartitionReassignment),
    ("NodeCreated",         r"/admin/preferred_replica_election",  events.ReplicaLeaderElection),
    ("NodeChildrenChanged", r"/isr_change_notification",           events.IsrChangeNotification),
    ("NodeChildrenChanged", r"/log_dir_event_notification",        events.LogDirEventNotification),
)
# fmt: on

_PATTERNS = tuple((said, re.compile(pattern), event) for said, pattern, event in WATCH_EVENTS)


def event_of(said: str, path: str) -> events.Event | None:
    """The event that a watch event stands for, or None where Kafka's handler for that path does not care."""
    for kind, pattern, event in _PATTERNS:
        if kind == said and (match := pattern.fullmatch(path)):
            return event(**{name: int(text) if name == "broker_id" else text for name, text in match.groupdict().items()})
    return None


def not_controller(event: events.Event) -> dict[str, Any]:
    """What whoever waits for an answer is told by a broker that is not, or no longer, controller."""
    match event:
        case events.ControlledShutdown():
            return {"error": "ControllerMovedException", "partitions": {}}
        case events.ReplicaLeaderElection(partitions=named):
            return {"error": "NONE", "partitions": dict.fromkeys(named or (), "NOT_CONTROLLER")}
    return {"error": "NOT_CONTROLLER", "partitions": {}}


def preempted(event: events.Event) -> dict[str, Any] | None:
    """The same for an event that never gets to be handled; None where Kafka forgets to answer, and the caller times out."""
    return None if isinstance(event, events.AlterIsrReceived) else not_controller(event)


def handle(ctx: ControllerContext, event: events.Event) -> Handler:
    """The whole story of one event: whoever is not active leaves it alone, and a lost fence ends in resignation.

    Raises NotImplementedError, by name, for an event that has no handler here yet.
    """
    row = HANDLERS.get(type(event))
    if row is None:
        raise NotImplementedError(f"{event.name} has no handler here yet; docs/omissions.md says so")
    if row.only_if_active and not ctx.is_active:
        if correlation_id := getattr(event, "correlation_id", None):
            yield Respond(correlation_id, not_controller(event))
        return
    try:
        yield from row.handler(ctx, event)
    except ControllerMoved:
        yield from leadership.maybe_resign(ctx)
