"""The controller of 1.1 to 3.9 on one page: one event thread makes every decision.

Theory. Everything that a controller reacts to reaches it as an event: a ZooKeeper notification, the
end of a session, a request, a response, a timer. Events wait in one queue, and one thread handles
them one after the other. So handlers share the controller's memory (`context.py`) without a lock,
and between two events the memory is consistent. KAFKA-5028 introduced the thread; KAFKA-5642 (1.1)
replaced the blocking ZkClient by asynchronous requests, and watches became one-shot handlers.

A notification carries no data. It names a path that has changed, and becomes an event (WATCHES).
The handler of this event reads the path again, and this read sets the next watch. A handler
therefore sees several changes between two reads as one change.

Rules of this page:

* The page holds tables and no decision. A handler is a generator in a module of its own; the row
  names it.
* THREADS and ROUTES: a broker has three threads. `main` starts the broker and `requests` handles
  the requests of other brokers; both run handlers of `broker/`. Every event without a route goes to
  the `controller` thread.
* EVENTS: `active?` is True where a broker that is not controller ignores the event, or answers
  NOT_CONTROLLER. The five events with False make a broker become controller or resign. `state` is
  the name under which Kafka's metrics count the time of the handler; no decision depends on it.
* WATCHES: one row for each kind of change that has a handler. A row has no effect until a step
  below registers its path.
* FAILOVER and RESIGNATION are sequences, and their order matters. A failover registers watches
  before it reads the state, so that no change between the read and the registration is lost. It
  sends brokers the list of live brokers (`send_update_metadata`) before the machines start, since
  the machines send LeaderAndIsr, which names brokers by id alone. Reassignments and deletions
  continue once both machines run.
* An expired session ends the controller's term at once: ON_EXPIRY goes to the head of an emptied
  queue. The events of ON_NEW_SESSION follow.

What the tables do not say:

* Which states a partition or a replica can have: `partition_machine.py`, `replica_machine.py`.
* What the controller sends: `request_batch.py`.
* What follows a write that ZooKeeper refuses since another broker is controller: the handler gets
  ControllerMoved (`driver/fenced_writes.py`), and `handlers.handle` then calls `maybe_resign`.
* What differs between 1.1 and 3.9: a rule of `controller_rules.py` inside a handler, or
  `earlier/event_thread_to_2_5.py`.

Read next: `partition_machine.py` (its table), `broker_changes.py` (one complete reaction),
`controller_election.py` (how a term begins and ends), then `failover_steps.py`.

Source: KafkaController.scala and ControllerEventManager.scala (2.8).
"""

from functools import partial

from kcontrol.controller import broker_changes as brokers
from kcontrol.controller import controlled_shutdown as shutdown
from kcontrol.controller import controller_election as election
from kcontrol.controller import design
from kcontrol.controller import failover_steps as f
from kcontrol.controller import isr_changes as isr
from kcontrol.controller import log_dir_failures as log_dirs
from kcontrol.controller import reassignment as phases
from kcontrol.controller import reassignment_requests as moves
from kcontrol.controller import replica_machine as replicas
from kcontrol.controller import requested_elections as elections
from kcontrol.controller import topic_changes as topics
from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller import unclean_elections as unclean
from kcontrol.core import events as e
from kcontrol.core import znodes as zk
from kcontrol.core.controller_rules import EVENT_THREAD
from kcontrol.core.events import ControllerState as S

# The patterns of paths with a name in them, which becomes a field of the event.
REGISTRATION = r"/brokers/ids/(?P<broker_id>\d+)"
TOPIC = r"/brokers/topics/(?P<topic>[^/]+)"
STATE_OF_PARTITION = r"(?P<partition>/brokers/topics/[^/]+/partitions/\d+/state)"

Row = design.WatchRow

# fmt: off
THREADS = (
    #                thread        context of its handlers       lock that it shares
    design.ThreadRow("main",       "broker",                     None),
    design.ThreadRow("controller", "controller",                 None),
    design.ThreadRow("requests",   "broker",                     None),
)

REASSIGNMENT = design.ReassignmentProtocol(
    initialize=f.nothing,                                  # at failover, before the machines start
    trigger_pending=moves.initialize_partition_reassignments,  # at failover, once both machines run
    on_request=moves.zk_partition_reassignment,            # a tool has written a request
    on_isr_change=phases.partition_reassignment_isr_change, # a state znode has changed
    on_broker_startup=phases.resume_reassignments_on,      # brokers have started
)

EVENTS = design.events_by_state({
    # state
    #    event                                active? handler
    S.CONTROLLER_CHANGE: [
        (e.Startup,                            False, election.startup),
        (e.ControllerChange,                   False, election.controller_change),
        (e.Reelect,                            False, election.reelect),
        (e.RegisterBrokerAndReelect,           False, election.register_and_reelect),
        (e.Expire,                             False, election.expire)],
    S.BROKER_CHANGE: [
        (e.BrokerChange,                       True,  brokers.broker_change),
        (e.BrokerModifications,                True,  brokers.broker_modifications)],
    S.TOPIC_CHANGE: [
        (e.TopicChange,                        True,  topics.topic_change),
        (e.PartitionModifications,             True,  topics.partition_modifications)],
    S.TOPIC_DELETION: [
        (e.TopicDeletion,                      True,  deletion.topic_deletion),
        (e.TopicDeletionStopReplicaResponseReceived,
         True,  deletion.stop_replica_response_received)],
    S.LEADER_AND_ISR_RESPONSE_RECEIVED: [
        (e.LeaderAndIsrResponseReceived,       True,  log_dirs.leader_and_isr_response_received)],
    S.UPDATE_METADATA_RESPONSE_RECEIVED: [
        (e.UpdateMetadataResponseReceived,     True,  brokers.update_metadata_response_received)],
    S.ISR_CHANGE: [
        (e.AlterIsrReceived,                   True,  isr.alter_isr_received),
        (e.IsrChangeNotification,              True,  isr.isr_change_notification)],
    S.LOG_DIR_CHANGE: [
        (e.LogDirEventNotification,            True,  log_dirs.log_dir_event_notification)],
    S.CONTROLLED_SHUTDOWN: [
        (e.ControlledShutdown,                 True,  shutdown.controlled_shutdown)],
    S.MANUAL_LEADER_BALANCE: [
        (e.ReplicaLeaderElection,              True,  elections.replica_leader_election)],
    S.AUTO_LEADER_BALANCE: [
        (e.AutoPreferredReplicaLeaderElection,
         True,  elections.auto_preferred_replica_leader_election)],
    S.UNCLEAN_LEADER_ELECTION_ENABLE: [
        (e.UncleanLeaderElectionEnable,        True,  elections.unclean_leader_election_enable)],
    S.TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE: [
        (e.TopicUncleanLeaderElectionEnable,
         True,  elections.topic_unclean_leader_election_enable)],
    S.ALTER_PARTITION_REASSIGNMENT: [
        (e.ZkPartitionReassignment,            True,  REASSIGNMENT.on_request),
        (e.ApiPartitionReassignment,           True,  moves.api_partition_reassignment),
        (e.PartitionReassignmentIsrChange,     True,  REASSIGNMENT.on_isr_change)],
    S.LIST_PARTITION_REASSIGNMENT: [
        (e.ListPartitionReassignments,         True,  moves.list_partition_reassignments)],
})

WATCHES = (
    #   notification           path                           event
    Row("NodeCreated",         zk.CONTROLLER,                 e.ControllerChange),
    Row("NodeDataChanged",     zk.CONTROLLER,                 e.ControllerChange),
    Row("NodeDeleted",         zk.CONTROLLER,                 e.Reelect),
    Row("NodeChildrenChanged", zk.BROKER_IDS,                 e.BrokerChange),
    Row("NodeDataChanged",     REGISTRATION,                  e.BrokerModifications),
    Row("NodeChildrenChanged", zk.TOPICS,                     e.TopicChange),
    Row("NodeDataChanged",     TOPIC,                         e.PartitionModifications),
    Row("NodeChildrenChanged", zk.DELETE_TOPICS,              e.TopicDeletion),
    Row("NodeCreated",         zk.REASSIGN_PARTITIONS,        e.ZkPartitionReassignment),
    Row("NodeDataChanged",     STATE_OF_PARTITION,            e.PartitionReassignmentIsrChange),
    Row("NodeCreated",         zk.PREFERRED_REPLICA_ELECTION, e.ReplicaLeaderElection),
    Row("NodeChildrenChanged", zk.ISR_CHANGE_NOTIFICATION,    e.IsrChangeNotification),
    Row("NodeChildrenChanged", zk.LOG_DIR_EVENT_NOTIFICATION, e.LogDirEventNotification),
)
HANDLER_KINDS: dict[str, tuple[bool, ...]] = {
    # notification         calls the handlers of children (True) or of the znode itself (False)
    "NodeCreated":         (False,),
    "NodeDeleted":         (False,),
    "NodeDataChanged":     (False,),
    "NodeChildrenChanged": (True,),
}

FAILOVER: tuple[design.Step, ...] = (
    f.enable_feature_versioning,
    f.register_handlers,
    f.delete_notifications,
    f.initialize_context,
    REASSIGNMENT.initialize,
    deletion.fetch_topic_deletions_in_progress,
    f.send_update_metadata,
    f.start_replica_machine,
    f.start_partition_machine,
    REASSIGNMENT.trigger_pending,
    deletion.try_topic_deletion,
    elections.pending_preferred_elections,
    elections.schedule_first_rebalance,
)

RESIGNATION: tuple[design.Step, ...] = (
    f.unregister_handler(zk.ISR_CHANGE_NOTIFICATION, children=True),
    f.unregister_handler(zk.REASSIGN_PARTITIONS),
    f.unregister_handler(zk.PREFERRED_REPLICA_ELECTION),
    f.unregister_handler(zk.LOG_DIR_EVENT_NOTIFICATION, children=True),
    f.unregister_broker_handlers,
    f.stop_rebalancing,
    f.unregister_reassignment_handlers,
    f.unregister_handler(zk.TOPICS, children=True),
    f.unregister_topic_handlers,
    f.unregister_handler(zk.DELETE_TOPICS, children=True),
    f.unregister_handler(zk.BROKER_IDS, children=True),
    f.clear_fields(*f.CLEARED_AT_RESIGNATION),
    f.reset_epochs,
)

MACHINES = design.MachineDecisions(
    unclean_allowed=unclean.unclean_allowed,                    # topics that allow unclean ones
    move_without_leadership=replicas.move_without_leadership,   # replicas without leadership
    ignores_missing_state_znode=replicas.ignores_missing_state_znode,
    receivers_of_smaller_isr=replicas.receivers_of_smaller_isr, # LeaderAndIsr with the new ISR
)

ON_EXPIRY = (e.Expire,)
ON_NEW_SESSION = (e.RegisterBrokerAndReelect,)

DESIGN = design.Design(
    EVENT_THREAD, THREADS, "controller", {}, design.handlers_of(EVENTS), WATCHES,
    partial(design.event_for_notification, WATCHES), HANDLER_KINDS, FAILOVER, RESIGNATION,
    REASSIGNMENT, ON_EXPIRY, ON_NEW_SESSION, has_listeners=False, elect=election.elect_with_epoch,
    active_by_channels=False, starts_machines=False, resume_deletions=deletion.resume_deletions,
    machines=MACHINES,
)
# fmt: on
