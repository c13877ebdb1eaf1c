"""Rules of controller and brokers: one field for each difference between Kafka's releases.

`rules(release)` returns the value of each rule in one release.

Source: the branches of Kafka that each rule names; the order of releases is that of
`../docs/sources.md`.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Literal, Self

from kcontrol.core.releases import sort_key
from kcontrol.core.rule_fields import FIRST_RELEASE, LAST_RELEASE, column, since, since_protocol

Design = Literal["listeners and one lock", "listeners and one event thread", "one event thread"]
LISTENERS: Final = "listeners and one lock"
QUEUE: Final = "listeners and one event thread"
EVENT_THREAD: Final = "one event thread"

Order = Literal["isr", "ar"]
BrokerOrder = Literal["as given", "hashed", "champ"]
Truncation = Literal["high_watermark", "leader_epoch", "common_epoch"]

# Source: ZkUtils.setupCommonPaths (0.8.1), ZkUtils.persistentZkPaths (0.9, 0.11, 1.0),
# ZkData.PersistentZkPaths (1.1, 2.8).
ROOT_PATHS_0_8 = (
    "/consumers", "/brokers/ids", "/brokers/topics", "/config/changes", "/config/topics",
    "/admin/delete_topics",
)  # fmt: skip
ROOT_PATHS_0_9 = (
    "/consumers", "/brokers/ids", "/brokers/topics", "/config/changes", "/config/topics",
    "/config/clients", "/admin/delete_topics", "/brokers/seqid", "/isr_change_notification",
)  # fmt: skip
ROOT_PATHS_0_11 = (*ROOT_PATHS_0_9, "/latest_producer_id_block")
ROOT_PATHS_1_0 = (*ROOT_PATHS_0_11, "/log_dir_event_notification")
ROOT_PATHS_1_1 = (
    "/consumers", "/brokers/ids", "/brokers/topics", "/config/changes", "/admin/delete_topics",
    "/brokers/seqid", "/isr_change_notification", "/latest_producer_id_block",
    "/log_dir_event_notification", "/config/topics", "/config/clients", "/config/users",
    "/config/brokers",
)  # fmt: skip
ROOT_PATHS_2_8 = (*ROOT_PATHS_1_1, "/config/ips")

# Source: ControllerEvent.preempt (2.2, 2.8).
ANSWERED_2_2 = ("ControlledShutdown", "ReplicaLeaderElection")
ANSWERED_2_7 = (*ANSWERED_2_2, "ApiPartitionReassignment", "ListPartitionReassignments")


# fmt: off
@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one release and inter-broker protocol version: a field for each difference.

    A rule is a difference between releases of Kafka; the field has the rule's value in this
    release.
    """

    # The release of Kafka, and its `inter.broker.protocol.version`.
    release: str
    inter_broker_protocol: str

    # -------------------------------------------------- start, election, failover, resignation

    design: Design = since(
        ("0.8.0", "listeners and one lock"), ("0.11.0", "listeners and one event thread"),
        ("1.1.0", "one event thread"),
        doc="Which threads a controller has, and which of them handles an event (KAFKA-5028).")
    registers_first: bool = since(("0.8.0", True), ("0.8.1", False), ("1.1.0", True),
        doc="Whether a starting broker registers before it takes part in the election of the "
            "controller.")
    registers_with_version: bool = since(("0.8.0", False), ("2.2.0", True),
        doc="Whether a broker creates its znode empty and sets it afterwards, so that its data "
            "has version 1.")
    elects_with_epoch: bool = since(("0.8.0", False), ("2.1.0", True),
        doc="Whether a new controller writes `/controller` and the controller epoch in one "
            "transaction.")
    follows_epoch: bool = since(("0.8.0", True), ("0.8.2", False),
        doc="Whether every broker listens to `/controller_epoch` (KAFKA-1096).")
    reads_before_electing: bool = since(("0.8.0", False), ("0.8.2", True),
        doc="Whether a broker reads `/controller` first and tries to create it only if it is "
            "missing.")
    awaits_in_flight_requests: bool = since(("0.8.0", False), ("0.10.2", True), ("2.1.1", False),
        doc="Whether a controller that closes a channel waits for the answer to its last request "
            "(KAFKA-4959, KAFKA-7576).")
    resigns_when_deleted: bool = since(("0.8.0", False), ("0.8.1", True),
        doc="Whether a controller resigns when its `/controller` is deleted.")
    failed_failover: Literal["keeps /controller", "deletes /controller"] = since(
        ("0.8.0", "keeps /controller"), ("0.8.1", "deletes /controller"),
        doc="What a broker does with `/controller` when its failover has failed.")
    resigns_when_replaced: bool = since(("0.8.0", False), ("0.9.0", True),
        doc="Whether a controller resigns when `/controller` names another broker (KAFKA-1477).")
    resigns_unlocked: bool = since(("0.8.0", False), ("0.10.2", True),
        doc="Whether a controller releases its lock before and after a resignation (KAFKA-4360).")
    skips_own_session: bool = since(("0.8.0", False), ("0.10.2", True),
        doc="Whether a controller ignores a new session as long as `/controller` still names its "
            "broker (KAFKA-4229).")
    checks_active_first: bool = since(("0.8.0", False), ("0.10.2", True),
        doc="Whether a listener checks first that its broker is the active controller.")
    send_after_resignation: Literal["fails", "deletes /controller"] = since(
        ("0.8.0", "fails"), ("0.9.0", "deletes /controller"),
        doc="What a request causes that a broker wants to send after its resignation.")
    unstarted_scheduler: Literal["fails", "is left"] = since(
        ("0.8.0", "fails"), ("0.9.0", "is left"),
        doc="What a resignation does with the scheduler of automatic elections if that never "
            "started.")
    controller_epoch_conflict: Literal["is logged", "ends the failover"] = since(
        ("0.8.0", "is logged"), ("1.1.0", "ends the failover"),
        doc="What a failover does when another controller has written the controller epoch.")
    root_paths: tuple[str, ...] = since(
        ("0.8.0", ()), ("0.8.1", ROOT_PATHS_0_8), ("0.9.0", ROOT_PATHS_0_9),
        ("0.11.0", ROOT_PATHS_0_11), ("1.0.0", ROOT_PATHS_1_0), ("1.1.0", ROOT_PATHS_1_1),
        ("2.8.0", ROOT_PATHS_2_8),
        doc="Which persistent znodes a starting broker creates, in this order.")
    generates_cluster_id: bool = since(("0.8.0", False), ("0.10.1", True),
        doc="Whether the first broker of a cluster creates `/cluster/id` (KIP-78).")
    znode_of_earlier_session: Literal["is awaited", "fails"] = since(
        ("0.8.0", "is awaited"), ("0.9.0", "fails"),
        doc="Whether a broker waits for the end of an earlier session that still holds its znode, "
            "or fails.")
    broker_epochs: bool = since(("0.8.0", False), ("2.2.0", True),
        doc="Whether broker epochs show the controller a restart between two reads (KAFKA-7235).")
    responds_when_preempted: tuple[str, ...] = since(
        ("0.8.0", ()), ("2.2.0", ANSWERED_2_2), ("2.7.0", ANSWERED_2_7),
        doc="Which events answer NOT_CONTROLLER to their caller when a resignation drops them "
            "from the queue.")
    handlers_outlive_session: bool = since(("0.8.0", True), ("1.1.0", False),
        doc="Whether a handler that is under way goes on in the session after an expired one "
            "(KAFKA-3083).")
    fenced_writes: bool = since(("0.8.0", False), ("2.1.0", True),
        doc="Whether every write of the controller checks the version of `/controller_epoch` "
            "(KAFKA-6082).")
    pipelined: bool = since(("0.8.0", False), ("1.1.0", True),
        doc="Whether a batch of paths is one round trip to ZooKeeper, instead of one for each "
            "path (KAFKA-5501).")
    controller_znode: Literal[1, 2] = since(("0.8.0", 1), ("3.4.0", 2),
        doc="The version of the format of `/controller` (KIP-866).")

    # ------------------------------------------------------------ state machines and elections

    dead_replica_first_state: Literal["OFFLINE", "DELETION_INELIGIBLE"] = since(
        ("0.8.0", "OFFLINE"), ("0.8.1", "DELETION_INELIGIBLE"),
        doc="Which state a failover gives to a replica on a broker that is down.")
    replicas_of_brokers: Literal["znodes", "cache"] = since(("0.8.0", "znodes"), ("0.8.1", "cache"),
        doc="Where the controller looks up the replicas of brokers that start or fail.")
    offline_order: Order = since(("0.8.0", "isr"), ("0.8.2", "ar"),
        doc="Whether an offline election takes the first replica of the ISR or of the assignment "
            "(KAFKA-1503).")
    shutdown_order: Order = since(("0.8.0", "isr"), ("0.10.0", "ar"),
        doc="Whether the election of a controlled shutdown takes the first replica of the ISR or "
            "of the assignment.")
    controller_lookup: Literal["getController", "getControllerId"] = since(
        ("0.8.0", "getController"), ("1.1.0", "getControllerId"),
        doc="How a broker that shuts down reads `/controller`. getController raises an error if "
            "the znode is missing, and also reads data that is only a broker id, without JSON.")
    unreachable_controller: Literal["stops the broker", "is retried"] = since(
        ("0.8.0", "stops the broker"), ("0.8.2", "is retried"),
        doc="What a controlled shutdown does where the broker cannot connect to the controller "
            "(BlockingChannel.connect).")
    shutdown_skips_deleted: bool = since(("0.8.0", False), ("2.1.0", True),
        doc="Whether a controlled shutdown leaves out partitions of topics that are being deleted.")
    shutdown_moves_single_replicas: bool = since(("0.8.0", True), ("0.8.2", False),
        doc="Whether a controlled shutdown tries, in vain, to move partitions that have one "
            "replica.")
    unclean: Literal["always", "configured"] = since(("0.8.0", "always"), ("0.8.2", "configured"),
        doc="Whether unclean elections are always allowed or depend on "
            "`unclean.leader.election.enable`.")
    unclean_default: bool = since(("0.8.0", True), ("0.11.0", False),
        doc="The default of `unclean.leader.election.enable`.")
    last_isr_member: Literal["leaves", "stays if clean", "stays"] = since(
        ("0.8.0", "leaves"), ("0.8.2", "stays if clean"), ("1.1.0", "stays"),
        doc="Whether the last member of an ISR stays there when its broker fails: "
            "never, where unclean elections are forbidden, or always.")
    leaderless: Literal["dead leader", "no online leader"] = since(
        ("0.8.0", "dead leader"), ("1.0.0", "no online leader"),
        doc="Which partitions get an election after a broker failure: those that the failed "
            "brokers led, "
            "or all whose leader is offline.")
    preferred_already_leads: Literal["not needed", "elected again", "skipped"] = since(
        ("0.8.0", "not needed"), ("1.1.0", "elected again"), ("2.2.0", "skipped"),
        doc="What a preferred election does for a partition that its preferred replica leads "
            "already (KIP-183).")
    deleting_topic_election: Literal["stops all", "left out"] = since(
        ("0.8.0", "stops all"), ("0.8.2", "left out"),
        doc="What a requested preferred election does when some of its topics are being deleted.")
    rebalance_requires_isr: bool = since(("0.8.0", False), ("2.6.0", True),
        doc="Whether the automatic preferred election skips a preferred replica that is not in "
            "the ISR.")
    broker_order: BrokerOrder = since(
        ("0.8.0", "as given"), ("1.1.0", "hashed"), ("2.6.0", "champ"),
        doc="In which order the replica state machine visits brokers (see "
            "controller/replica_machine_order.py).")
    offline_at_startup: bool = since(("0.8.0", False), ("2.3.0", True),
        doc="Whether a failover takes replicas on brokers that are down out of the ISR "
            "(KAFKA-7836).")
    rereads_assignment: bool = since(("0.8.0", True), ("0.9.0", False),
        doc="Whether the controller reads the assignment of a new partition a second time.")
    leaderless_replica_of_deleting_topic: Literal["fails", "stays without record", "goes"] = since(
        ("0.8.0", "fails"), ("0.9.0", "stays without record"), ("1.1.0", "goes"),
        doc="Whether a replica of a topic that is being deleted becomes OfflineReplica if its "
            "partition has no leadership.")
    leader_recovery: bool = since_protocol(("0.8.0", False), ("3.2", True),
        doc="Whether the state znode records that an unclean election chose the leader (KIP-704).")

    # ------------------------------------------------------------ requests of the controller

    smaller_isr_recipients: Literal["leader", "remaining replicas"] = since(
        ("0.8.0", "leader"), ("0.8.2", "remaining replicas"),
        doc="Which replicas receive LeaderAndIsr when a failed broker has left the ISR.")
    empty_metadata: Literal["all partitions", "no partitions"] = since(
        ("0.8.0", "all partitions"), ("2.2.0", "no partitions"),
        doc="What UpdateMetadata contains if the controller names no partition for it.")
    sends_empty_metadata: bool = since(("0.8.0", False), ("0.9.0", True),
        doc="Whether the controller sends an UpdateMetadata that contains no partition.")
    metadata_on_broker_startup: Literal["new brokers", "all brokers"] = since(
        ("0.8.0", "new brokers"), ("0.9.0", "all brokers"),
        doc="Which brokers receive UpdateMetadata when a broker starts.")
    metadata_on_any_failure: bool = since(("0.8.0", False), ("0.9.0", True),
        doc="Whether brokers receive UpdateMetadata after a failure that took no leader away.")
    metadata_on_broker_failure: Literal["if no leader was lost", "if no request was sent"] = since(
        ("0.8.0", "if no leader was lost"), ("3.1.0", "if no request was sent"),
        doc="When a broker failure causes an UpdateMetadata of its own: if no partition lost its "
            "leader, "
            "or if no other request was due (KAFKA-13225).")
    deleting_topic_metadata: Literal["every time", "if named"] = since(
        ("0.8.0", "every time"), ("2.0.0", "if named"),
        doc="Whether every UpdateMetadata contains all partitions that are being deleted, or only "
            "those that it names.")
    new_broker_gets_deleting_topics: bool = since(("0.8.0", True), ("2.7.0", False),
        doc="Whether the UpdateMetadata to a starting broker contains topics that are being "
            "deleted.")
    deleting_topic_isr_is_sent: bool = since(("0.8.0", True), ("0.8.2", False),
        doc="Whether replicas receive LeaderAndIsr with a smaller ISR of a topic that is being "
            "deleted.")
    stop_replica_batched: bool = since(("0.8.0", True), ("0.8.1", False), ("2.3.0", True),
        doc="Whether a broker receives one StopReplica request for all its replicas of a batch.")
    plain_stop_replica_batched: bool = since(("0.8.0", False), ("0.10.2", True), ("1.1.0", False),
        doc="Whether one StopReplica request names all replicas that keep their log.")
    empty_stop_replica: bool = since(("0.8.0", False), ("0.10.2", True), ("2.3.0", False),
        doc="Whether a StopReplica request without replicas precedes the requests for single "
            "replicas.")
    stop_replica_by_partition: bool = since_protocol(("0.8.0", False), ("2.6", True),
        doc="Whether StopReplica has a leader epoch and a flag for deletion for each partition "
            "(KIP-570).")
    handles_metadata_responses: bool = since(("0.8.0", False), ("2.5.0", True),
        doc="Whether the answer to UpdateMetadata becomes an event of the controller.")
    reads_requests_of_dead_controllers: bool = since(
        ("0.8.0", True), ("0.9.0", False), ("0.10.2", True),
        doc="Whether a broker reads requests that a controller sent before its process ended or "
            "its channel closed.")

    # ------------------------------------------------------------ topics and their deletion

    topic_configs: bool = since(("0.8.0", False), ("0.8.1", True),
        doc="Whether topics have settings of their own, in ZooKeeper.")
    config_change: Literal[0, 1, 2] = since(("0.8.0", 0), ("0.9.0", 1), ("0.10.1", 2),
        doc="The version of the format of a notification of changed settings.")
    deletes_topics: bool = since(("0.8.0", False), ("1.0", True),
        doc="The default of `delete.topic.enable`.")
    forbidden_deletion: Literal["is ignored", "is cleared"] = since(
        ("0.8.0", "is ignored"), ("0.10.2", "is cleared"),
        doc="What happens to a requested deletion while `delete.topic.enable` is false: "
            "no listener sees it, or the controller deletes the request.")
    deletion_waits_for_reassignment: bool = since(("0.8.0", True), ("0.8.2", False),
        doc="Whether a topic whose deletion is requested during its reassignment or preferred "
            "election is deleted only after the end of the reassignment or election.")
    deletes_topics_together: bool = since(("0.8.0", False), ("2.5.0", True),
        doc="Whether the controller deletes all queued topics together, instead of one after the "
            "other.")
    deleted_partitions_end: Literal["last", "first"] = since(("0.8.0", "last"), ("2.1.0", "first"),
        doc="Whether the partitions of a deleted topic become NonExistentPartition before or "
            "after its replicas go.")
    reverts_expansion: bool = since(("0.8.0", False), ("2.0.0", True),
        doc="Whether the controller takes back partitions that were added to a topic that is "
            "being deleted.")
    topic_znode: Literal[1, 2, 3] = since_protocol(("0.8.0", 1), ("2.4", 2), ("2.8", 3),
        doc="The version of the format of a topic's znode (KIP-455, KIP-516).")
    topic_ids: bool = since_protocol(("0.8.0", False), ("2.8", True),
        doc="Whether a topic has an id (KIP-516).")

    # ------------------------------------------------------------ reassignment

    reassignment: Literal["six steps", "twelve steps", "phases"] = since(
        ("0.8.0", "six steps"), ("0.8.1", "twelve steps"), ("2.4.0", "phases"),
        doc="By which protocol the controller moves replicas (KIP-455).")
    reassigns_on_request: bool = since(("0.8.0", False), ("2.4.0", True),
        doc="Whether admin clients ask the controller for a reassignment, instead of writing a "
            "znode (KIP-455).")
    bumped_epoch_is_cached: bool = since(("0.8.0", False), ("2.4.0", True),
        doc="Whether the controller caches the leader epoch that a reassignment has raised.")
    added_replica_is_new: bool = since(("0.8.0", False), ("2.7.0", True),
        doc="Whether LeaderAndIsr calls a replica new that a reassignment adds, "
            "so that its log may be created beside a directory that is offline.")
    isr_notification_completes_reassignment: bool = since(("0.8.0", False), ("2.7.0", True),
        doc="Whether an ISR change notification can complete a reassignment.")
    refuses_dead_targets: bool = since(("0.8.0", True), ("0.10.1", False),
        doc="Whether the controller refuses a reassignment to a broker that is down.")

    # ------------------------------------------------------------ brokers and their replicas

    accepts_unassigned_partitions: bool = since(("0.8.0", True), ("0.8.1", False),
        doc="Whether a broker accepts LeaderAndIsr for a partition whose replicas do not contain "
            "that broker.")
    deletes_logs: bool = since(("0.8.0", False), ("0.8.1", True),
        doc="Whether a broker deletes the log of a replica when StopReplica says so.")
    old_leader_epoch: Literal["", "StaleLeaderEpoch", "STALE_CONTROLLER_EPOCH"] = since(
        ("0.8.0", ""), ("0.8.1", "StaleLeaderEpoch"), ("0.9.0", "STALE_CONTROLLER_EPOCH"),
        doc="Which error a broker answers to LeaderAndIsr with a leader epoch that is not newer.")
    fetches_during_shutdown: bool = since(("0.8.0", True), ("0.8.1", False),
        doc="Whether a broker in a controlled shutdown starts to fetch from a new leader "
            "(isShuttingDown).")
    locks_metadata: bool = since(("0.8.0", False), ("0.8.2", True),
        doc="Whether a broker takes the lock of all replica changes to handle UpdateMetadata.")
    response_waits_for_fetch: bool = since(("0.8.0", True), ("1.1.0", False),
        doc="Whether a follower answers a request only after its fetch from a frozen leader has "
            "ended.")
    outlives_log_dir: bool = since(("0.8.0", False), ("1.0.0", True),
        doc="Whether a broker keeps running without one of its log directories (KIP-112).")
    truncate_to: Truncation = since(
        ("0.8.0", "high_watermark"), ("0.11.0", "leader_epoch"), ("2.0.0", "common_epoch"),
        doc="How a follower finds the offset at which it truncates its log (KIP-101, KIP-279).")
    rejoins_at: Literal["high_watermark", "leader_epoch_start"] = since(
        ("0.8.0", "high_watermark"), ("1.1.2", "leader_epoch_start"),
        doc="Up to which offset a follower must have fetched to enter the ISR (KAFKA-7128).")
    fenced_fetches: bool = since(("0.8.0", False), ("2.1.0", True),
        doc="Whether a leader rejects a fetch with another leader epoch than its own (KIP-320).")
    min_insync_replicas: Literal["no setting", "as set", "at most the replicas"] = since(
        ("0.8.0", "no setting"), ("0.8.2", "as set"), ("3.7.0", "at most the replicas"),
        doc="How many replicas must be in sync for acks=all (KAFKA-15583).")
    isr_requires_live_broker: bool = since(("0.8.0", False), ("3.3.0", True),
        doc="Whether only brokers that are alive may enter an ISR (KIP-841).")
    failed_alter_isr: Literal["stays pending", "is dropped", "is retried"] = since(
        ("0.8.0", "stays pending"), ("3.1.0", "is dropped"), ("3.2.1", "is retried"),
        doc="What a leader does with a pending ISR after UNKNOWN_SERVER_ERROR (KAFKA-14010).")
    alter_isr: bool = since_protocol(("0.8.0", False), ("2.7", True),
        doc="Whether leaders ask the controller for a change of the ISR, instead of writing it "
            "(KIP-497).")
    isr_notifications: bool = since_protocol(("0.8.0", False), ("0.9.0", True), ("2.7", False),
        doc="Whether leaders create notifications of ISR changes that they have written.")
    broker_znode: Literal[1, 2, 3, 4, 5] = since_protocol(
        ("0.8.0", 1), ("0.9.0", 2), ("0.10.0", 3), ("0.10.2", 4), ("2.7", 5),
        doc="The version of the format of a broker's znode.")
    features: bool = since_protocol(("0.8.0", False), ("2.7", True),
        doc="Whether there is `/feature`, and a broker registers with its features (KIP-584).")
    feature_znode: Literal[1, 2] = since_protocol(("0.8.0", 1), ("3.3", 2),
        doc="The version of the format of `/feature` (KIP-778).")
    takes_producer_ids: bool = since_protocol(("0.8.0", False), ("0.11.0", True), ("3.0", False),
        doc="Whether a starting broker takes a block of producer ids (KIP-730).")

    def with_changes(self, **changes: Any) -> Self:
        """Raises TypeError for an unknown rule."""
        return replace(self, **changes)
# fmt: on


@cache
def rules(release: str, inter_broker_protocol: str | None = None) -> Rules:
    """`inter_broker_protocol` None: the release's. Raises ValueError outside 0.8.0 to 3.9."""
    protocol = inter_broker_protocol or release
    sort_key(protocol)  # raises ValueError for text that is no release
    if not sort_key(FIRST_RELEASE) <= sort_key(release) < (*sort_key(LAST_RELEASE), 1_000):
        legal = f"{FIRST_RELEASE} to {LAST_RELEASE}, the last one with ZooKeeper"
        raise ValueError(f"{release!r} is no release from {legal}")
    return Rules(release, protocol, **column(Rules, release, protocol))
