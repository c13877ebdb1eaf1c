"""Which handler answers which event, and how a watch event becomes one: two tables for each design.

Source: ControllerEventManager's process in KafkaController.scala and the ZNodeChangeHandlers at its end (2.8); the listeners of
KafkaController.scala, PartitionStateMachine.scala and ReplicaStateMachine.scala (0.8.1), ControllerZkListener.scala (0.10.2).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from kcontrol import events as e
from kcontrol.controller import broker_changes as brokers
from kcontrol.controller import controlled_shutdown as goodbye
from kcontrol.controller import controller_election as election
from kcontrol.controller import controller_election_0_8 as election_0_8
from kcontrol.controller import controller_election_1_0 as election_1_0
from kcontrol.controller import elections_on_request as asked
from kcontrol.controller import event_thread_1_0 as thread_1_0
from kcontrol.controller import isr_changes as isr
from kcontrol.controller import listeners_0_8 as listeners
from kcontrol.controller import listeners_1_0 as zk_client
from kcontrol.controller import preferred_elections_0_8 as preferred
from kcontrol.controller import preferred_elections_1_0 as preferred_1_0
from kcontrol.controller import reassignment_0_8 as moves_0_8
from kcontrol.controller import reassignment_requests as moves
from kcontrol.controller import topic_changes as topics
from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller import topic_deletion_0_8 as deletion_0_8
from kcontrol.controller import ways_to_reassign as ways
from kcontrol.controller.context import ControllerContext
from kcontrol.effects import ControllerMoved, Handler, Respond
from kcontrol.events import ControllerState as S
from kcontrol.generations import EVENT_THREAD, LISTENERS, QUEUE, Rules
from kcontrol.znodes import parse_state_path


class Row(NamedTuple):
    """One event: the controller's state while it is handled, whether only an active controller looks at it, the handler."""

    state: S
    only_if_active: bool
    handler: Callable[[ControllerContext, Any], Handler]


STATE_OF_PARTITION = r"(?P<partition>/brokers/topics/[^/]+/partitions/\d+/state)"

# fmt: off
ROWS: tuple[tuple[type[e.Event], S, bool, Callable[[ControllerContext, Any], Handler]], ...] = (
    # event                               state                                    active?  handler
    (e.Startup,                            S.CONTROLLER_CHANGE,                     False, election.startup),
    (e.ControllerChange,                   S.CONTROLLER_CHANGE,                     False, election.controller_change),
    (e.Reelect,                            S.CONTROLLER_CHANGE,                     False, election.reelect),
    (e.RegisterBrokerAndReelect,           S.CONTROLLER_CHANGE,                     False, election.register_and_reelect),
    (e.Expire,                             S.CONTROLLER_CHANGE,                     False, election.expire),
    (e.BrokerChange,                       S.BROKER_CHANGE,                         True,  brokers.broker_change),
    (e.BrokerModifications,                S.BROKER_CHANGE,                         True,  brokers.broker_modifications),
    (e.TopicChange,                        S.TOPIC_CHANGE,                          True,  topics.topic_change),
    (e.PartitionModifications,             S.TOPIC_CHANGE,                          True,  topics.partition_modifications),
    (e.TopicDeletion,                      S.TOPIC_DELETION,                        True,  deletion.topic_deletion),
    (e.TopicDeletionStopReplicaResponseReceived,
                                           S.TOPIC_DELETION,                        True,  deletion.stop_replica_response_received),
    (e.LeaderAndIsrResponseReceived,       S.LEADER_AND_ISR_RESPONSE_RECEIVED,      True,  brokers.leader_and_isr_response_received),
    (e.UpdateMetadataResponseReceived,     S.UPDATE_METADATA_RESPONSE_RECEIVED,     True,  brokers.update_metadata_response_received),
    (e.AlterIsrReceived,                   S.ISR_CHANGE,                            True,  isr.alter_isr_received),
    (e.IsrChangeNotification,              S.ISR_CHANGE,                            True,  isr.isr_change_notification),
    (e.LogDirEventNotification,            S.LOG_DIR_CHANGE,                        True,  brokers.log_dir_event_notification),
    (e.ControlledShutdown,                 S.CONTROLLED_SHUTDOWN,                   True,  goodbye.controlled_shutdown),
    (e.ReplicaLeaderElection,              S.MANUAL_LEADER_BALANCE,                 True,  asked.replica_leader_election),
    (e.AutoPreferredReplicaLeaderElection, S.AUTO_LEADER_BALANCE,                   True,  asked.auto_preferred_replica_leader_election),
    (e.UncleanLeaderElectionEnable,        S.UNCLEAN_LEADER_ELECTION_ENABLE,        True,  asked.unclean_leader_election_enable),
    (e.TopicUncleanLeaderElectionEnable,   S.TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE,  True,  asked.topic_unclean_leader_election_enable),
    (e.ZkPartitionReassignment,            S.ALTER_PARTITION_REASSIGNMENT,          True,  ways.zk_partition_reassignment),
    (e.ApiPartitionReassignment,           S.ALTER_PARTITION_REASSIGNMENT,          True,  moves.api_partition_reassignment),
    (e.PartitionReassignmentIsrChange,     S.ALTER_PARTITION_REASSIGNMENT,          True,  ways.partition_reassignment_isr_change),
    (e.ListPartitionReassignments,         S.LIST_PARTITION_REASSIGNMENT,           True,  moves.list_partition_reassignments),
)

WATCH_EVENTS: tuple[tuple[str, str, Callable[..., e.Event]], ...] = (
    # what ZooKeeper says    path                                   event
    ("NodeCreated",         r"/controller",                        e.ControllerChange),
    ("NodeDataChanged",     r"/controller",                        e.ControllerChange),
    ("NodeDeleted",         r"/controller",                        e.Reelect),
    ("NodeChildrenChanged", r"/brokers/ids",                       e.BrokerChange),
    ("NodeDataChanged",     r"/brokers/ids/(?P<broker_id>\d+)",    e.BrokerModifications),
    ("NodeChildrenChanged", r"/brokers/topics",                    e.TopicChange),
    ("NodeDataChanged",     r"/brokers/topics/(?P<topic>[^/]+)",   e.PartitionModifications),
    ("NodeChildrenChanged", r"/admin/delete_topics",               e.TopicDeletion),
    ("NodeCreated",         r"/admin/reassign_partitions",         e.ZkPartitionReassignment),
    ("NodeDataChanged",     STATE_OF_PARTITION,                    e.PartitionReassignmentIsrChange),
    ("NodeCreated",         r"/admin/preferred_replica_election",  e.ReplicaLeaderElection),
    ("NodeChildrenChanged", r"/isr_change_notification",           e.IsrChangeNotification),
    ("NodeChildrenChanged", r"/log_dir_event_notification",        e.LogDirEventNotification),
)

LISTENER_ROWS: tuple[tuple[type[e.Event], S, bool, Callable[[ControllerContext, Any], Handler]], ...] = (
    # event                               state                                    active?  handler
    (e.BrokerStartup,                      S.CONTROLLER_CHANGE,                     False, election_0_8.broker_startup),
    (e.LeaderChange,                       S.CONTROLLER_CHANGE,                     False, election_0_8.leader_change),
    (e.ControllerEpochChange,              S.CONTROLLER_CHANGE,                     False, election_0_8.controller_epoch_change),
    (e.NewSession,                         S.CONTROLLER_CHANGE,                     False, election_0_8.new_session),
    (e.RegisterBroker,                     S.IDLE,                                  False, election_0_8.register_broker),
    (e.BrokerChange,                       S.BROKER_CHANGE,                         True,  listeners.broker_change),
    (e.TopicChange,                        S.TOPIC_CHANGE,                          True,  listeners.topic_change),
    (e.PartitionModifications,             S.TOPIC_CHANGE,                          True,  listeners.partition_modifications),
    (e.TopicDeletion,                      S.TOPIC_DELETION,                        True,  deletion_0_8.topic_deletion),
    (e.DeletionsResumed,                   S.TOPIC_DELETION,                        False, deletion_0_8.deletions_resumed),
    (e.TopicDeletionStopReplicaResponseReceived,
                                           S.TOPIC_DELETION,                        False, deletion.stop_replica_response_received),
    (e.IsrChangeNotification,              S.ISR_CHANGE,                            True,  listeners.isr_change_notification),
    (e.ControlledShutdown,                 S.CONTROLLED_SHUTDOWN,                   False, listeners.controlled_shutdown),
    (e.ReplicaLeaderElection,              S.MANUAL_LEADER_BALANCE,                 True,  preferred.replica_leader_election),
    (e.AutoPreferredReplicaLeaderElection, S.AUTO_LEADER_BALANCE,                   False,
                                                                        preferred.auto_preferred_replica_leader_election),
    (e.ZkPartitionReassignment,            S.ALTER_PARTITION_REASSIGNMENT,          True,  moves_0_8.zk_partition_reassignment),
    (e.PartitionReassignmentIsrChange,     S.ALTER_PARTITION_REASSIGNMENT,          True,
                                                                        moves_0_8.partition_reassignment_isr_change),
)

QUEUE_ROWS: tuple[tuple[type[e.Event], S, bool, Callable[[ControllerContext, Any], Handler]], ...] = (
    # event                               state                                    active?  handler, where it is not that of above
    (e.PathChanged,                        S.IDLE,                                  False, zk_client.path_changed),
    (e.NewSession,                         S.IDLE,                                  False, zk_client.new_session),
    (e.RegisterBroker,                     S.IDLE,                                  False, zk_client.register_broker),
    (e.Startup,                            S.CONTROLLER_CHANGE,                     False, election_1_0.startup),
    (e.ControllerChange,                   S.CONTROLLER_CHANGE,                     False, election_1_0.controller_change),
    (e.Reelect,                            S.CONTROLLER_CHANGE,                     False, election_1_0.reelect),
    (e.TopicChange,                        S.TOPIC_CHANGE,                          True,  thread_1_0.topic_change),
    (e.TopicDeletion,                      S.TOPIC_DELETION,                        True,  thread_1_0.topic_deletion),
    (e.IsrChangeNotification,              S.ISR_CHANGE,                            True,  thread_1_0.isr_change_notification),
    (e.LeaderAndIsrResponseReceived,       S.LEADER_AND_ISR_RESPONSE_RECEIVED,      False, brokers.leader_and_isr_response_received),
    (e.LogDirEventNotification,            S.LOG_DIR_CHANGE,                        False, thread_1_0.log_dir_event_notification),
    (e.ControlledShutdown,                 S.CONTROLLED_SHUTDOWN,                   True,  thread_1_0.controlled_shutdown),
    (e.ReplicaLeaderElection,              S.MANUAL_LEADER_BALANCE,                 True,  preferred_1_0.replica_leader_election),
    (e.AutoPreferredReplicaLeaderElection, S.AUTO_LEADER_BALANCE,                   True,
                                                                    preferred_1_0.auto_preferred_replica_leader_election),
    (e.ZkPartitionReassignment,            S.ALTER_PARTITION_REASSIGNMENT,          True,  moves_0_8.partition_reassignment),
)
AS_SINCE_1_1 = (e.BrokerChange, e.PartitionModifications, e.TopicDeletionStopReplicaResponseReceived, e.PartitionReassignmentIsrChange)

LISTENED: tuple[tuple[str, str, Callable[..., e.Event]], ...] = (
    # to its      path                                   event
    ("data",      r"/controller",                        e.LeaderChange),
    ("data",      r"/controller_epoch",                  e.ControllerEpochChange),
    ("children",  r"/brokers/ids",                       e.BrokerChange),
    ("children",  r"/brokers/topics",                    e.TopicChange),
    ("data",      r"/brokers/topics/(?P<topic>[^/]+)",   e.PartitionModifications),
    ("children",  r"/admin/delete_topics",               e.TopicDeletion),
    ("data",      r"/admin/reassign_partitions",         e.ZkPartitionReassignment),
    ("data",      STATE_OF_PARTITION,                    e.PartitionReassignmentIsrChange),
    ("data",      r"/admin/preferred_replica_election",  e.ReplicaLeaderElection),
    ("children",  r"/isr_change_notification",           e.IsrChangeNotification),
)
LISTENS_FOR: dict[str, tuple[str, ...]] = {
    # a listener to the   is called after
    "data":              ("NodeCreated", "NodeDeleted", "NodeDataChanged"),
    "children":          ("NodeCreated", "NodeDeleted", "NodeChildrenChanged"),
}
# fmt: on

HANDLERS = {event: Row(state, only_if_active, handler) for event, state, only_if_active, handler in ROWS}
LISTENER_HANDLERS = {event: Row(state, only_if_active, handler) for event, state, only_if_active, handler in LISTENER_ROWS}
QUEUE_HANDLERS = {event: HANDLERS[event] for event in AS_SINCE_1_1} | {row[0]: Row(*row[1:]) for row in QUEUE_ROWS}
DESIGNS = {EVENT_THREAD: HANDLERS, QUEUE: QUEUE_HANDLERS, LISTENERS: LISTENER_HANDLERS}

_PATTERNS = {
    EVENT_THREAD: tuple((said, re.compile(pattern), event) for said, pattern, event in WATCH_EVENTS),
    LISTENERS: tuple((said, re.compile(pattern), event) for to, pattern, event in LISTENED for said in LISTENS_FOR[to]),
}


READ: dict[str, Callable[[str], Any]] = {"broker_id": int, "partition": parse_state_path}  # what is in a path besides names


def event_of(said: str, path: str, design: str = EVENT_THREAD) -> e.Event | None:
    """The event that a watch event stands for, or None where Kafka's handler for that path does not care."""
    if design == QUEUE:
        called = (to == "children" for to, after in LISTENS_FOR.items() if said in after)
        return next((e.PathChanged(path, children) for children in called if zk_client.is_called(path, children=children)), None)
    for kind, pattern, event in _PATTERNS[design]:
        if kind == said and (match := pattern.fullmatch(path)):
            return event(**{name: READ.get(name, str)(text) for name, text in match.groupdict().items()})
    return None


def listens(said: str, path: str, design: str, watched: Collection[tuple[str, bool]]) -> bool:
    """Whether a handler of this path, and of this kind, is registered: `watched` holds path and whether it is about children."""
    if design == EVENT_THREAD:
        return (path, said == "NodeChildrenChanged") in watched
    return any((path, to == "children") in watched for to, after in LISTENS_FOR.items() if said in after)


def every_event(watched: Collection[tuple[str, bool]], design: str = LISTENERS) -> list[e.Event]:
    """What ZkClient calls after a new session: every listener that is subscribed. Source: ZkClient.fireAllEvents (0.3)."""
    said = [("NodeChildrenChanged" if children else "NodeDataChanged", path) for path, children in sorted(watched)]
    return [event for kind, path in said if (event := event_of(kind, path, design))]


def not_controller(event: e.Event) -> dict[str, Any]:
    """What whoever waits for an answer is told by a broker that is not, or no longer, controller."""
    match event:
        case e.ControlledShutdown():
            return {"error": "ControllerMovedException", "partitions": {}}
        case e.ReplicaLeaderElection(partitions=named):
            return {"error": "NONE", "partitions": dict.fromkeys(named or (), "NOT_CONTROLLER")}
    return {"error": "NOT_CONTROLLER", "partitions": {}}


def preempted(rules: Rules, event: e.Event) -> dict[str, Any] | None:
    """The same for an event that never gets to be handled; None where Kafka forgets to answer, and the caller times out."""
    return not_controller(event) if event.name in rules.preempted_are_told else None


def handle(ctx: ControllerContext, event: e.Event) -> Handler:
    """The whole story of one event: whoever is not active leaves it alone, and a lost fence ends in resignation.

    Raises NotImplementedError, by name, for an event that has no handler here yet.
    """
    row = DESIGNS[ctx.rules.design].get(type(event))
    if row is None:
        raise NotImplementedError(f"{event.name} has no handler here yet; docs/omissions.md says so")
    if row.only_if_active and ctx.rules.listens_in_office and not ctx.is_active:
        if correlation_id := getattr(event, "correlation_id", None):
            yield Respond(correlation_id, not_controller(event))
        return
    try:
        yield from row.handler(ctx, event)
    except ControllerMoved:
        yield from election.maybe_resign(ctx)
