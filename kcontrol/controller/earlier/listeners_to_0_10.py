"""The controller of 0.8.0 to 0.10.2 on one page: listeners on several threads that share one lock.

Theory. ZkClient calls listeners on its own thread. Each listener takes `controllerLock`, decides
and writes, and waits for ZooKeeper while it holds the lock. Four more threads take this lock:
`main` for the election at start-up, which comes before the broker registers (except in 0.8.0), the
thread of a request for a controlled shutdown, the scheduler of the rebalance, and the thread that
deletes topics. `YieldLock` in a handler releases the lock and takes it again; in between, another
thread may change the data with which the handler works. Which thread runs next is chosen from
`World.actions()`, the possible actions of the simulated cluster.

Rules of this page:

* A listener to the data of a path is called when the znode is created, changed or deleted. Before
  the call ZkClient sets the watch again.
* In FAILOVER and RESIGNATION each release is a column: the place of the step in the release's
  order, 0 where the release does not have the step.
* True in the column `active?` of EVENTS means that only a controller calls the handler. It counts
  in 0.10.2 alone (KAFKA-4360): earlier releases do not check this before they call the handler.

Why the tables look as they do. A broker is controller while it has channels (`close_channels`),
whatever `/controller` says: so the machines and the channels, and not an id, decide whether a
handler acts. 0.8.0 and 0.8.1 unsubscribe no listener in a resignation, so a broker that has
resigned still handles notifications. Topics cannot be deleted in 0.8.0, so its column lacks those
steps.

What the tables do not say: where a handler releases the lock (look for `YieldLock`), and which
decisions of the machines differ from 1.1 (`machine_decisions.py`).

Read next: `listener_election.py`, `listener_handlers.py`, `topic_deletion_thread.py`,
`reassignment_to_2_3.py`.

Source: KafkaController.scala, PartitionStateMachine.scala and ReplicaStateMachine.scala (0.8.0,
0.8.1, 0.8.2, 0.9.0, 0.10.2); ControllerZkListener.scala (0.10.2).
"""

from functools import partial

from kcontrol.broker.events import BrokerStartup
from kcontrol.controller import design as d
from kcontrol.controller import failover_steps as f
from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.design import Design, ReassignmentProtocol, ThreadRow, WatchRow
from kcontrol.controller.earlier import failover_steps as s
from kcontrol.controller.earlier import listener_election as election
from kcontrol.controller.earlier import listener_handlers as changes
from kcontrol.controller.earlier import listener_preferred_election as preferred
from kcontrol.controller.earlier import reassignment_to_2_3 as moves
from kcontrol.controller.earlier import topic_deletion_thread as deleting
from kcontrol.controller.earlier.controller_epoch_increment import increment_controller_epoch
from kcontrol.controller.earlier.machine_decisions import DECISIONS
from kcontrol.controller.earlier.request_batch_to_2_5 import metadata_partitions, requests_to_send
from kcontrol.controller.earlier.scala_hash_order import order_of_the_caller
from kcontrol.controller.event_thread import STATE_OF_PARTITION
from kcontrol.core import events as e
from kcontrol.core import znodes as zk
from kcontrol.core.controller_rules import LISTENERS, Rules
from kcontrol.core.events import ControllerState as S

LOCK = "controllerLock"

# fmt: off
THREADS = (
    #         thread                 context of its handlers       lock that it shares
    ThreadRow("main",                "controller",                 LOCK),
    ThreadRow("zk-events",           "controller",                 LOCK),
    ThreadRow("controlled-shutdown", "controller",                 LOCK),
    ThreadRow("scheduler",           "controller",                 LOCK),
    ThreadRow("delete-topics",       "controller",                 LOCK),
    ThreadRow("send",                "controller",                 LOCK),
    ThreadRow("requests",            "broker",                     None),
)
ROUTES: dict[type[e.Event], str] = {
    # event                                     thread, where it is not `zk-events`
    e.ControlledShutdown:                       "controlled-shutdown",
    e.AutoPreferredReplicaLeaderElection:       "scheduler",
    e.DeletionsResumed:                         "delete-topics",
    e.TopicDeletionStopReplicaResponseReceived: "send",
}

EVENTS = d.events_by_state({
    # state
    #    event                                active? handler
    S.CONTROLLER_CHANGE: [
        (BrokerStartup,                        False, election.broker_startup),
        (e.LeaderChange,                       False, election.leader_change),
        (e.ControllerEpochChange,              False, election.controller_epoch_change),
        (e.NewSession,                         False, election.new_session)],
    S.IDLE: [
        (e.RegisterBroker,                     False, election.register_broker)],
    S.BROKER_CHANGE: [
        (e.BrokerChange,                       True,  changes.broker_change)],
    S.TOPIC_CHANGE: [
        (e.TopicChange,                        True,  changes.topic_change),
        (e.PartitionModifications,             True,  changes.partition_modifications)],
    S.TOPIC_DELETION: [
        (e.TopicDeletion,                      True,  deleting.topic_deletion),
        (e.DeletionsResumed,                   False, deleting.deletions_resumed),
        (e.TopicDeletionStopReplicaResponseReceived, False,
         deletion.stop_replica_response_received)],
    S.ISR_CHANGE: [
        (e.IsrChangeNotification,              True,  changes.isr_change_notification)],
    S.CONTROLLED_SHUTDOWN: [
        (e.ControlledShutdown,                 False, changes.controlled_shutdown)],
    S.MANUAL_LEADER_BALANCE: [
        (e.ReplicaLeaderElection,              True,  preferred.replica_leader_election)],
    S.AUTO_LEADER_BALANCE: [
        (e.AutoPreferredReplicaLeaderElection, False,
         preferred.auto_preferred_replica_leader_election)],
    S.ALTER_PARTITION_REASSIGNMENT: [
        (e.ZkPartitionReassignment,            True,  moves.zk_partition_reassignment),
        (e.PartitionReassignmentIsrChange,     True,  moves.partition_reassignment_isr_change)],
})

WATCHES = (
    #        listener to its   path                                   event
    WatchRow("data",           r"/controller",                        e.LeaderChange),
    WatchRow("data",           r"/controller_epoch",                  e.ControllerEpochChange),
    WatchRow("children",       r"/brokers/ids",                       e.BrokerChange),
    WatchRow("children",       r"/brokers/topics",                    e.TopicChange),
    WatchRow("data",           r"/brokers/topics/(?P<topic>[^/]+)",   e.PartitionModifications),
    WatchRow("children",       r"/admin/delete_topics",               e.TopicDeletion),
    WatchRow("data",           r"/admin/reassign_partitions",         e.ZkPartitionReassignment),
    WatchRow("data",           STATE_OF_PARTITION,                e.PartitionReassignmentIsrChange),
    WatchRow("data",           r"/admin/preferred_replica_election",  e.ReplicaLeaderElection),
    WatchRow("children",       r"/isr_change_notification",           e.IsrChangeNotification),
)
HANDLER_KINDS: dict[str, tuple[bool, ...]] = {
    # notification         calls listeners to children (True) or to the data (False)
    "NodeCreated":         (False, True),
    "NodeDeleted":         (False, True),
    "NodeDataChanged":     (False,),
    "NodeChildrenChanged": (True,),
}

RELEASES =                                          ("0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.2")
FAILOVER = (
    # step                                              place in the order of each release
    (s.read_epoch,                                       0,       0,       1,       1,       1),
    (increment_controller_epoch,                         1,       1,       2,       2,       2),
    (s.subscribe_data_changes(zk.REASSIGN_PARTITIONS),      2,       2,       3,       3,       3),
    (s.subscribe_child_changes(zk.ISR_CHANGE_NOTIFICATION), 0,       0,       0,       4,       4),
    (s.subscribe_data_changes(zk.PREFERRED_REPLICA_ELECTION),
                                                         3,       3,       4,       5,       5),
    (s.subscribe_child_changes(zk.TOPICS),                  4,       4,       5,       6,       6),
    (s.subscribe_topic_deletions,                        0,       5,       6,       7,       0),
    (s.subscribe_child_changes(zk.DELETE_TOPICS),           0,       0,       0,       0,       7),
    (s.subscribe_child_changes(zk.BROKER_IDS),              5,       6,       7,       8,       8),
    (s.initialize_context_and_channels,                  6,       7,       8,       9,       9),
    (preferred.initialize_preferred_elections,           0,       8,       9,      10,      10),
    (moves.fetch_pending_reassignments,                  0,       9,      10,      11,      11),
    (deleting.fetch_topic_deletions_in_progress,         0,      10,      11,      12,      12),
    (s.start_replica_machine,                            7,      11,      12,      13,      14),
    (f.start_partition_machine,                          8,      12,      13,      14,      15),
    (s.subscribe_topic_changes,                          9,      13,      14,      15,      16),
    (moves.resume_reassignments,                        10,       0,       0,       0,       0),
    (moves.trigger_pending_reassignments,                0,      14,      15,      16,      17),
    (preferred.initialize_and_trigger_preferred_elections, 11,       0,       0,       0,       0),
    (preferred.trigger_preferred_elections,              0,      15,      16,      17,      18),
    (f.send_update_metadata,                            12,      16,      17,      18,      13),
    (preferred.start_scheduler,                          0,      17,      18,      19,      19),
    (deleting.start_thread,                              0,      18,      19,      20,      20),
)
RESIGNATION = (
    # step                                                   place in the order of each release
    (f.unregister_handler(zk.ISR_CHANGE_NOTIFICATION, children=True),
                                                         0,       0,       0,       1,       1),
    (f.unregister_handler(zk.REASSIGN_PARTITIONS),          0,       0,       1,       2,       2),
    (f.unregister_handler(zk.PREFERRED_REPLICA_ELECTION),   0,       0,       2,       3,       3),
    (deleting.stop_thread,                               0,       1,       3,       4,       4),
    (preferred.stop_scheduler,                           0,       3,       4,       5,       5),
    (f.unregister_reassignment_handlers,                 0,       0,       5,       6,       6),
    (s.stop_machines,                                    1,       2,       6,       7,       7),
    (f.unregister_handler(zk.TOPICS, children=True),        0,       0,       7,       8,       8),
    (f.unregister_topic_handlers,                        0,       0,       8,       9,       9),
    (f.unregister_handler(zk.DELETE_TOPICS, children=True), 0,       0,       9,      10,      10),
    (f.unregister_handler(zk.BROKER_IDS, children=True),    0,       0,      10,      11,      11),
    (s.await_in_flight_requests_on_open_channels,        0,       0,      11,      12,      12),
    (s.close_channels,                                   2,       4,      12,      13,      13),
    (f.reset_epochs,                                     0,       0,      13,      14,      14),
)
# fmt: on


def new_session(host: str, port: int, session: int) -> e.Event:
    """Design.on_new_session has the parameters, which this release does not need."""
    # Every function of `Design.on_new_session` gets these parameters.
    return e.NewSession()


def register_without_session(host: str, port: int, session: int) -> e.Event:
    """Up to 0.8.2 the event has no session."""
    return e.RegisterBroker(host, port)


def register(host: str, port: int, session: int) -> e.Event:
    """Return the event by which the broker registers again in the new session `session`."""
    return e.RegisterBroker(host, port, session=session)


def design(rules: Rules) -> Design:
    """Return the tables of the controller in the release of `rules`, which is at most 0.10.

    They have its threads, event handlers, watches, and steps of failover and resignation.
    """
    checks = rules.checks_active_first
    rows = [(event, state, active and checks, handler) for event, state, active, handler in EVENTS]
    six_steps = rules.reassignment == "six steps"
    reassignment = ReassignmentProtocol(
        f.nothing if six_steps else moves.fetch_pending_reassignments,
        moves.resume_reassignments if six_steps else moves.trigger_pending_reassignments,
        moves.zk_partition_reassignment, moves.partition_reassignment_isr_change,
        moves.resume_reassignments_on,
    )  # fmt: skip
    fails = rules.znode_of_earlier_session == "fails"
    return Design(
        LISTENERS, THREADS, "zk-events", ROUTES, d.handlers_of(rows), WATCHES,
        partial(_event_of, WATCHES), HANDLER_KINDS, d.column(FAILOVER, RELEASES, rules.release),
        d.column(RESIGNATION, RELEASES, rules.release), reassignment, on_expiry=(),
        on_new_session=(new_session, register if fails else register_without_session),
        has_listeners=True, elect=election.elect, active_by_channels=True, starts_machines=True,
        resume_deletions=deleting.signal_thread, require_channels=changes.require_channels,
        machines=DECISIONS, in_groups=order_of_the_caller,
        metadata_partitions=metadata_partitions, requests_to_send=requests_to_send,
    )  # fmt: skip


def _event_of(rows: tuple[WatchRow, ...], notification: str, path: str) -> e.Event | None:
    """The first row whose pattern matches all of `path`."""
    # "NodeCreated" and "NodeDeleted" fit rows about data and rows about children; data is
    # preferred.
    kinds = ("children" if children else "data" for children in HANDLER_KINDS[notification])
    return next(
        (event for kind in kinds if (event := d.event_for_notification(rows, kind, path))), None
    )
