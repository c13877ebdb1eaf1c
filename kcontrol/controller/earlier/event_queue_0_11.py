"""The controller of 0.11 and 1.0 on one page: one event thread, which ZkClient's listeners feed.

Theory. KAFKA-5028 moved all decisions to one event thread with a queue. ZkClient stays: on its own
thread it sets the watch of a changed path again, reads the path, and calls the listener. The
listener only queues an event (CALLS in `zkclient_thread.py`). So the event thread works with data
that the listener has read: names of topics, or the id in `/controller`. While the event waits in
the queue, the data in ZooKeeper may change again. No write is fenced, so a controller that has lost
`/controller` goes on writing until it handles the event of the change.

Rules of this page: the rules of `../event_thread.py`. AS_SINCE_1_1 has the events whose handlers
are those of that page. In FAILOVER and RESIGNATION each release is a column: the place of the step
in the release's order, 0 where the release does not have the step. Log directories can fail alone
since 1.0 (KIP-112): in 0.11 the step that unsubscribes from their notifications has no effect.

Why the tables look as they do: RESIGNATION clears fields in the middle, since in these releases
each machine clears its own states when it stops, and the deletion manager clears its queue.

What the tables do not say: what a listener reads (`zkclient_thread.py`), and which decisions of the
machines differ from 1.1 (`machine_decisions.py`).

Read next: `zkclient_thread.py`, `queue_election.py`, `queue_handlers.py`.

Source: KafkaController.scala (0.11, 1.0).
"""

from kcontrol.controller import design as d
from kcontrol.controller import event_thread
from kcontrol.controller import failover_steps as f
from kcontrol.controller import log_dir_failures as log_dirs
from kcontrol.controller import requested_elections as elections
from kcontrol.controller import topic_deletion as deletion
from kcontrol.controller.design import Design, ReassignmentProtocol, ThreadRow
from kcontrol.controller.earlier import broker_changes_to_2_1 as brokers
from kcontrol.controller.earlier import failover_steps as s
from kcontrol.controller.earlier import queue_election as election
from kcontrol.controller.earlier import queue_handlers as changes
from kcontrol.controller.earlier import queue_preferred_election as preferred
from kcontrol.controller.earlier import reassignment_1_1_to_2_3 as steps
from kcontrol.controller.earlier import reassignment_to_2_3 as moves
from kcontrol.controller.earlier import zkclient_thread as zk_client
from kcontrol.controller.earlier.controller_epoch_increment import increment_controller_epoch
from kcontrol.controller.earlier.listener_handlers import require_channels
from kcontrol.controller.earlier.listeners_to_0_10 import HANDLER_KINDS, new_session, register
from kcontrol.controller.earlier.machine_decisions import DECISIONS
from kcontrol.controller.earlier.request_batch_to_2_5 import metadata_partitions, requests_to_send
from kcontrol.controller.earlier.scala_hash_order import order_of_the_caller
from kcontrol.controller.earlier.topic_deletion_to_2_4 import resume_deletions_one_by_one
from kcontrol.core import events as e
from kcontrol.core import znodes as zk
from kcontrol.core.controller_rules import QUEUE, Rules
from kcontrol.core.events import ControllerState as S

# fmt: off
THREADS = (
    #         thread        context of its handlers       lock that it shares
    ThreadRow("zk-events",  "controller",                 None),
    ThreadRow("controller", "controller",                 None),
    ThreadRow("main",       "broker",                     None),
    ThreadRow("requests",   "broker",                     None),
)
OF_ZK_CLIENT = (e.PathChanged, e.NewSession, e.RegisterBroker)
ROUTES: dict[type[e.Event], str] = dict.fromkeys(OF_ZK_CLIENT, "zk-events")

EVENTS = d.events_by_state({
    # state
    #    event                                active? handler, where 1.1 has another
    S.IDLE: [
        (e.PathChanged,                        False, zk_client.path_changed),
        (e.NewSession,                         False, zk_client.new_session),
        (e.RegisterBroker,                     False, zk_client.register_broker)],
    S.CONTROLLER_CHANGE: [
        (e.Startup,                            False, election.startup),
        (e.ControllerChange,                   False, election.controller_change),
        (e.Reelect,                            False, election.reelect)],
    S.BROKER_CHANGE: [
        (e.BrokerChange,                       True,  brokers.broker_change)],
    S.TOPIC_CHANGE: [
        (e.TopicChange,                        True,  changes.topic_change)],
    S.TOPIC_DELETION: [
        (e.TopicDeletion,                      True,  changes.topic_deletion)],
    S.ISR_CHANGE: [
        (e.IsrChangeNotification,              True,  changes.isr_change_notification)],
    S.LEADER_AND_ISR_RESPONSE_RECEIVED: [
        (e.LeaderAndIsrResponseReceived,       False, log_dirs.leader_and_isr_response_received)],
    S.LOG_DIR_CHANGE: [
        (e.LogDirEventNotification,            False, changes.log_dir_event_notification)],
    S.CONTROLLED_SHUTDOWN: [
        (e.ControlledShutdown,                 True,  changes.controlled_shutdown)],
    S.MANUAL_LEADER_BALANCE: [
        (e.ReplicaLeaderElection,              True,  preferred.replica_leader_election)],
    S.AUTO_LEADER_BALANCE: [
        (e.AutoPreferredReplicaLeaderElection, True,
         preferred.auto_preferred_replica_leader_election)],
    S.ALTER_PARTITION_REASSIGNMENT: [
        (e.ZkPartitionReassignment,            True,  moves.partition_reassignment),
        (e.PartitionReassignmentIsrChange,     True,  steps.partition_reassignment_isr_change)],
})
AS_SINCE_1_1 = (e.PartitionModifications, e.TopicDeletionStopReplicaResponseReceived)

RELEASES =                                         ("0.11.0", "1.0.0")
FAILOVER = (
    # step                                              place in the order of each release
    (s.read_epoch,                                       1,       1),
    (increment_controller_epoch,                         2,       2),
    (s.delete_log_dir_events,                            0,       3),
    (s.subscribe_data_changes(zk.REASSIGN_PARTITIONS),      3,       4),
    (s.subscribe_child_changes(zk.ISR_CHANGE_NOTIFICATION), 4,       5),
    (s.subscribe_data_changes(zk.PREFERRED_REPLICA_ELECTION), 5,       6),
    (s.subscribe_child_changes(zk.TOPICS),                  6,       7),
    (s.subscribe_child_changes(zk.DELETE_TOPICS),           7,       8),
    (s.subscribe_child_changes(zk.BROKER_IDS),              8,       9),
    (s.subscribe_child_changes(zk.LOG_DIR_EVENT_NOTIFICATION), 0,      10),
    (s.initialize_context,                               9,      11),
    (moves.fetch_pending_reassignments,                 10,      12),
    (deletion.fetch_topic_deletions_in_progress,        11,      13),
    (f.send_update_metadata,                            12,      14),
    (f.start_replica_machine,                           13,      15),
    (f.start_partition_machine,                         14,      16),
    (s.subscribe_topic_changes,                         15,      17),
    (moves.trigger_pending_reassignments,               16,      18),
    (deletion.try_topic_deletion,                       17,      19),
    (preferred.trigger_preferred_elections,             18,      20),
    (elections.schedule_first_rebalance,                    19,      21),
)
RESIGNATION = (
    # step                                                         place in each release's order
    (f.unregister_handler(zk.ISR_CHANGE_NOTIFICATION, children=True),  1,       1),
    (f.unregister_handler(zk.REASSIGN_PARTITIONS),                     2,       2),
    (f.unregister_handler(zk.PREFERRED_REPLICA_ELECTION),              3,       3),
    (f.unregister_handler(zk.LOG_DIR_EVENT_NOTIFICATION, children=True), 4,       4),
    (f.clear_fields("topics_to_be_deleted", "topics_ineligible_for_deletion"),
                                                                    5,       5),
    (f.stop_rebalancing,                                            6,       6),
    (f.unregister_reassignment_handlers,                            7,       7),
    (f.clear_fields("partition_states"),                            8,       8),
    (f.unregister_handler(zk.TOPICS, children=True),                   9,       9),
    (f.unregister_topic_handlers,                                  10,      10),
    (f.unregister_handler(zk.DELETE_TOPICS, children=True),           11,      11),
    (f.clear_fields("replica_states"),                             12,      12),
    (f.unregister_handler(zk.BROKER_IDS, children=True),              13,      13),
    (s.await_all_requests,                                         14,      14),
    (f.clear_fields(*s.CLEARED_AT_RESIGNATION),                    15,      15),
    (f.reset_epochs,                                               16,      16),
)

REASSIGNMENT = ReassignmentProtocol(
    initialize=moves.fetch_pending_reassignments,
    trigger_pending=moves.trigger_pending_reassignments,
    on_request=moves.partition_reassignment,
    on_isr_change=steps.partition_reassignment_isr_change,
    on_broker_startup=moves.resume_reassignments_on,
)
# fmt: on

HANDLERS = {event: event_thread.DESIGN.handlers[event] for event in AS_SINCE_1_1} | d.handlers_of(
    EVENTS
)


def design(rules: Rules) -> Design:
    """Return the tables of the controller in the release of `rules`, which is 0.11 or 1.0.

    They have its threads, event handlers, watches, and steps of failover and resignation.
    """
    return Design(
        QUEUE, THREADS, "controller", ROUTES, HANDLERS, event_thread.WATCHES, zk_client.event_of,
        HANDLER_KINDS, d.column(FAILOVER, RELEASES, rules.release),
        d.column(RESIGNATION, RELEASES, rules.release), REASSIGNMENT, on_expiry=(),
        on_new_session=(new_session, register), has_listeners=True, elect=election.elect,
        active_by_channels=False, starts_machines=False,
        resume_deletions=resume_deletions_one_by_one, require_channels=require_channels,
        machines=DECISIONS, in_groups=order_of_the_caller,
        metadata_partitions=metadata_partitions, requests_to_send=requests_to_send,
    )  # fmt: skip
