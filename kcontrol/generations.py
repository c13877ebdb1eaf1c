"""What differs between Kafka's releases: rule -> (since, value), ...; `rules(release)` picks one column.

Source: the branches of Kafka that each row names; the order of releases is that of `../docs/sources.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from kcontrol.config import CONFIGS
from kcontrol.releases import key, pick

FIRST_RELEASE, LAST_RELEASE = "0.8.0", "3.9"

LISTENERS = "listeners and one lock"
QUEUE = "listeners and one event thread"
EVENT_THREAD = "one event thread"

# What a broker makes sure of at its start, in its order.
# Source: ZkUtils.setupCommonPaths (0.8.1), ZkUtils.persistentZkPaths (0.9, 0.11, 1.0), ZkData.PersistentZkPaths (1.1, 2.8).
ROOT_PATHS_0_8 = (
    "/consumers", "/brokers/ids", "/brokers/topics", "/config/changes", "/config/topics", "/admin/delete_topics",
)  # fmt: skip
ROOT_PATHS_0_9 = (
    "/consumers", "/brokers/ids", "/brokers/topics", "/config/changes", "/config/topics", "/config/clients",
    "/admin/delete_topics", "/brokers/seqid", "/isr_change_notification",
)  # fmt: skip
ROOT_PATHS_0_11 = (*ROOT_PATHS_0_9, "/latest_producer_id_block")
ROOT_PATHS_1_0 = (*ROOT_PATHS_0_11, "/log_dir_event_notification")
ROOT_PATHS_1_1 = (
    "/consumers", "/brokers/ids", "/brokers/topics", "/config/changes", "/admin/delete_topics", "/brokers/seqid",
    "/isr_change_notification", "/latest_producer_id_block", "/log_dir_event_notification",
    "/config/topics", "/config/clients", "/config/users", "/config/brokers",
)  # fmt: skip
ROOT_PATHS_2_8 = (*ROOT_PATHS_1_1, "/config/ips")

# Whoever waits for the answer to such an event hears at least that it was dropped. Source: ControllerEvent.preempt (2.2, 2.8).
TOLD_2_2 = ("ControlledShutdown", "ReplicaLeaderElection")
TOLD_2_7 = (*TOLD_2_2, "ApiPartitionReassignment", "ListPartitionReassignments")

# fmt: off
RULES: dict[str, tuple[tuple[str, Any], ...]] = {
    # rule                    since, value ...                       what it decides
    "design":                 (("0.8.0", LISTENERS), ("0.11.0", QUEUE), ("1.1.0", EVENT_THREAD)),  # who handles what (KAFKA-5028)
    "registers_first":        (("0.8.0", True), ("0.8.1", False), ("1.1.0", True)),  # a broker at its start, or the election
    "registers_with_version": (("0.8.0", False), ("2.2.0", True)),   # created empty and set, so that its data has version 1
    "elects_with_epoch":      (("0.8.0", False), ("2.1.0", True)),   # /controller and the epoch in one transaction
    "follows_epoch":          (("0.8.0", True), ("0.8.2", False)),   # every broker listens to the epoch (KAFKA-1096)
    "looks_before_electing":  (("0.8.0", False), ("0.8.2", True)),   # who finds `/controller` does not try to create it
    "failover":               (("0.8.0", "0.8.0"), ("0.8.1", "0.8.1"), ("0.8.2", "0.8.2"),  # the order of its steps
                               ("0.9.0", "0.9.0"), ("0.10.2", "0.10.2"), ("0.11.0", QUEUE), ("1.1.0", EVENT_THREAD)),
    "resignation":            (("0.8.0", "0.8.0"), ("0.8.1", "0.8.1"), ("0.8.2", "0.8.2"), ("0.9.0", "0.9.0"),
                               ("0.11.0", QUEUE), ("1.1.0", EVENT_THREAD)),
    "awaits_requests":        (("0.8.0", False), ("0.10.2", True),   # a channel that is closed, for the request that is out
                               ("2.1.1", False)),                    # (KAFKA-4959, KAFKA-7576)
    "resigns_when_deleted":   (("0.8.0", False), ("0.8.1", True)),   # when its `/controller` goes
    "failed_failover":        (("0.8.0", "keeps /controller"), ("0.8.1", "deletes /controller")),
    "resigns_when_replaced":  (("0.8.0", False), ("0.9.0", True)),   # when `/controller` names another (KAFKA-1477)
    "resigns_unlocked":       (("0.8.0", False), ("0.10.2", True)),  # letting go of the lock before and after (KAFKA-4360)
    "skips_own_session":      (("0.8.0", False), ("0.10.2", True)),  # a new one, where `/controller` is ours (KAFKA-3083)
    "listens_in_office":      (("0.8.0", False), ("0.10.2", True)),  # listeners look first whether their broker rules
    "mute_send":              (("0.8.0", "fails"), ("0.9.0", "deletes /controller")),  # a request of one who has resigned
    "idle_scheduler":         (("0.8.0", "fails"), ("0.9.0", "is left")),  # when it is stopped without having been started
    "lost_epoch":             (("0.8.0", "is logged"), ("1.1.0", "ends it")),  # a failover whose epoch another has written
    "root_paths":             (("0.8.0", ()), ("0.8.1", ROOT_PATHS_0_8), ("0.9.0", ROOT_PATHS_0_9),  # what it creates
                               ("0.11.0", ROOT_PATHS_0_11), ("1.0.0", ROOT_PATHS_1_0),
                               ("1.1.0", ROOT_PATHS_1_1), ("2.8.0", ROOT_PATHS_2_8)),
    "names_cluster":          (("0.8.0", False), ("0.10.1", True)),  # the first broker of a cluster (KIP-78)
    "own_znode":              (("0.8.0", "waited out"), ("0.9.0", "fails")),  # of a session that an earlier life left behind
    "topic_configs":          (("0.8.0", False), ("0.8.1", True)),   # topics have settings of their own, in ZooKeeper
    "replica_table":          (("0.8.0", "0.8.0"), ("0.8.1", "0.8.1")),  # the transitions that replicas have
    "offline_again":          (("0.8.0", False), ("0.8.1", True)),   # a partition that is Offline may be made so once more
    "dead_at_startup":        (("0.8.0", "OFFLINE"), ("0.8.1", "DELETION_INELIGIBLE")),  # the first state of a dead replica
    "replicas_of_brokers":    (("0.8.0", "znodes"), ("0.8.1", "cache")),  # where they are looked up when brokers come and go
    "offline_order":          (("0.8.0", "isr"), ("0.8.2", "ar")),   # who leads after an offline election (KAFKA-1503)
    "shutdown_skips_deleted": (("0.8.0", False), ("2.1.0", True)),   # topics being deleted, at a controlled shutdown
    "shutdown_order":         (("0.8.0", "isr"), ("0.10.0", "ar")),  # who leads after a controlled shutdown
    "unclean":                (("0.8.0", "always"), ("0.8.2", "configured")),  # unclean elections, if there is no other way
    "unclean_default":        CONFIGS["unclean.leader.election.enable"].defaults,
    "last_isr_member":        (("0.8.0", "leaves"), ("0.8.2", "stays if clean"), ("1.1.0", "stays")),  # when its broker dies
    "leaderless":             (("0.8.0", "led by the dead"), ("1.0.0", "led by nobody online")),  # what looks for a leader then
    "broker_order":           (("0.8.0", "as given"), ("1.1.0", "hashed"), ("2.6.0", "champ")),  # replicas of several brokers
    "told_of_smaller_isr":    (("0.8.0", "leader"), ("0.8.2", "remaining replicas")),  # after a broker has died
    "empty_metadata":         (("0.8.0", "everything"), ("2.2.0", "brokers alone")),  # UpdateMetadata for no partition
    "metadata_for_nothing":   (("0.8.0", False), ("0.9.0", True)),   # whether UpdateMetadata goes out without any partition
    "new_replica_reads":      (("0.8.0", "znode"), ("1.1.0", "cache")),  # where it is looked up who leads its partition
    "told_of_newcomer":       (("0.8.0", "newcomer"), ("0.9.0", "everybody")),  # by UpdateMetadata
    "told_of_any_death":      (("0.8.0", False), ("0.9.0", True)),   # by UpdateMetadata, also if nobody else has to lead
    "forbidden_deletion":     (("0.8.0", "is not heard"), ("0.10.2", "is cleared")),  # asked for where topics may not be deleted
    "deletes_topics":         CONFIGS["delete.topic.enable"].defaults,
    "halts_what_is_asked":    (("0.8.0", True), ("0.8.2", False)),   # a reassignment, where a deletion is asked for meanwhile
    "doomed_election":        (("0.8.0", "stops all"), ("0.8.2", "left out")),  # asked for with others, of a doomed topic
    "lone_replica_is_moved":  (("0.8.0", True), ("0.8.2", False)),   # at a controlled shutdown, in vain
    "doomed_metadata":        (("0.8.0", "every time"), ("2.0.0", "where named")),  # UpdateMetadata of what is being deleted
    "newcomer_hears_of_doomed": (("0.8.0", True), ("2.7.0", False)),  # a broker that starts, by UpdateMetadata
    "deleted_together":       (("0.8.0", False), ("2.5.0", True)),   # topics, not one after the other
    "doomed_isr_is_told":     (("0.8.0", True), ("0.8.2", False)),   # a leader hears of it when its partition is being deleted
    "doomed_partitions_go":   (("0.8.0", "last"), ("2.1.0", "first")),  # before their replicas, or after them
    "dead_replica_fails":     (("0.8.0", False), ("2.3.0", True)),   # its deletion, without having been started
    "reverts_expansion":      (("0.8.0", False), ("2.0.0", True)),   # of a topic that is being deleted
    "unled_replica":          (("0.8.0", "stays"), ("1.1.0", "goes")),   # when its broker dies before anybody has led
    "unled_doomed_replica":   (("0.8.0", "fails"), ("0.9.0", "stays unsaid"), ("1.1.0", "goes")),  # the same, of a doomed topic
    "rereads_assignment":     (("0.8.0", True), ("0.9.0", False)),   # a new partition's replicas are read once more
    "empty_stop_replica":     (("0.8.0", False), ("0.10.2", True), ("2.3.0", False)),  # goes ahead of those for each
    "leads_already":          (("0.8.0", "not needed"), ("1.1.0", "elected again"), ("2.2.0", "left alone")),  # who prefers
    "stops_are_grouped":      (("0.8.0", False), ("0.10.2", True), ("1.1.0", False)),  # one request for all that stay on disk
    "stop_replica_batched":   (("0.8.0", True), ("0.8.1", False), ("2.3.0", True)),  # one request for all replicas
    "bumped_epoch_is_cached": (("0.8.0", False), ("2.4.0", True)),   # the epoch that a reassignment raises is remembered
    "added_replica_is_new":   (("0.8.0", False), ("2.7.0", True)),   # and may go to another directory than a lost one
    "notes_complete_moves":   (("0.8.0", False), ("2.7.0", True)),   # an ISR notification may finish a reassignment
    "refuses_dead_targets":   (("0.8.0", True), ("0.10.1", False)),  # a reassignment to a broker that is down
    "reassignment":           (("0.8.0", "six steps"), ("0.8.1", "twelve steps"),  # how partitions move
                               ("2.4.0", "phases")),                 # (KIP-455)
    "reassigns_on_request":   (("0.8.0", False), ("2.4.0", True)),   # admin clients ask brokers, not ZooKeeper (KIP-455)
    "rebalances_in_sync_alone": (("0.8.0", False), ("2.6.0", True)),  # a broker out of sync is not tried by the timer
    "preempted_are_told":     (("0.8.0", ()), ("2.2.0", TOLD_2_2), ("2.7.0", TOLD_2_7)),  # that their event was dropped
    "metadata_answers":       (("0.8.0", False), ("2.5.0", True)),   # the controller hears how UpdateMetadata went
    "broker_epochs":          (("0.8.0", False), ("2.2.0", True)),   # a restart between two reads is seen (KAFKA-7235)
    "strangers_obey":         (("0.8.0", True), ("0.8.1", False)),   # LeaderAndIsr that does not name them among the replicas
    "deletes_logs":           (("0.8.0", False), ("0.8.1", True)),   # a broker that is told to delete a replica
    "old_leader_epoch":       (("0.8.0", ""), ("0.8.1", "StaleLeaderEpoch"),  # a broker's answer to one
                               ("0.9.0", "STALE_CONTROLLER_EPOCH")),
    "fetch_names_epoch":      (("0.8.0", False), ("2.1.0", True)),   # a follower of an older leader epoch is refused (KIP-320)
    "outlives_session":       (("0.8.0", True), ("1.1.0", False)),   # what is under way goes on under the next session
    "reads_from_the_dead":    (("0.8.0", True), ("0.9.0", False), ("0.10.2", True)),  # what was sent before a process ended
    "fetches_to_the_end":     (("0.8.0", True), ("0.8.1", False)),   # who stops follows no new leader any more (isShuttingDown)
    "waits_for_fetch":        (("0.8.0", True), ("1.1.0", False)),   # a follower cannot leave a leader that is frozen
    "fenced_writes":          (("0.8.0", False), ("2.1.0", True)),   # every write checks /controller_epoch (KAFKA-6082)
    "pipelined":              (("0.8.0", False), ("1.1.0", True)),   # one round trip per batch, not per path (KAFKA-5501)
    "offline_at_startup":     (("0.8.0", False), ("2.3.0", True)),   # dead replicas leave the ISR at failover (KAFKA-7836)
    "outlives_log_dir":       (("0.8.0", False), ("1.0.0", True)),   # a broker goes on without one of its directories (KIP-112)
    "truncate_to":            (("0.8.0", "high_watermark"),          # how far a new follower cuts its log
                               ("0.11.0", "leader_epoch"),           # (KIP-101)
                               ("2.0.0", "common_epoch")),           # (KIP-279)
    "rejoins_at":             (("0.8.0", "high_watermark"),          # up to where a follower must be to enter the ISR
                               ("1.1.2", "leader_epoch_start")),     # (KAFKA-7128)
    "fenced_fetches":         (("0.8.0", False), ("2.1.0", True)),   # a fetch names its leader epoch (KIP-320)
    "untold_death":           (("0.8.0", "nothing was leaderless"),  # when brokers are told of one by a request of its own
                               ("3.1.0", "nothing was said")),       # (KAFKA-13225)
    "min_insync_replicas":    (("0.8.0", "no setting"), ("0.8.2", "as set"),  # how many acks=all needs
                               ("3.7.0", "at most the replicas")),   # (KAFKA-15583)
    "config_change":          (("0.8.0", 0), ("0.9.0", 1), ("0.10.1", 2)),  # the format of a notification of changed settings
    "isr_of_the_living":      (("0.8.0", False), ("3.3.0", True)),   # nobody else is taken into an ISR (KIP-841)
    "failed_alter_isr":       (("0.8.0", "stays pending"), ("3.1.0", "is given up"),  # a leader's wish, after
                               ("3.2.1", "is asked again")),         # UNKNOWN_SERVER_ERROR (KAFKA-14010)
    "controller_znode":       (("0.8.0", 1), ("3.4.0", 2)),          # its format (KIP-866)
}
PROTOCOL_RULES: dict[str, tuple[tuple[str, Any], ...]] = {
    # asked of inter.broker.protocol.version, whose default is the release's
    "broker_znode":           (("0.8.0", 1), ("0.9.0", 2), ("0.10.0", 3), ("0.10.2", 4), ("2.7", 5)),  # its format
    "topic_znode":            (("0.8.0", 1), ("2.4", 2), ("2.8", 3)),  # its format (KIP-455, KIP-516)
    "alter_isr":              (("0.8.0", False), ("2.7", True)),     # leaders ask the controller for ISR changes (KIP-497)
    "isr_notifications":      (("0.8.0", False), ("0.9.0", True), ("2.7", False)),  # leaders announce what they have written
    "stop_replica_by_partition": (("0.8.0", False), ("2.6", True)),  # StopReplica names epoch and fate of each (KIP-570)
    "topic_ids":              (("0.8.0", False), ("2.8", True)),     # topics carry an id (KIP-516)
    "features":               (("0.8.0", False), ("2.7", True)),     # /feature and broker registration version 5 (KIP-584)
    "feature_znode":          (("0.8.0", 1), ("3.3", 2)),            # its format (KIP-778)
    "takes_producer_ids":     (("0.8.0", False), ("0.11.0", True), ("3.0", False)),  # a broker at its start (KIP-730)
    "leader_recovery":        (("0.8.0", False), ("3.2", True)),     # that a leader was elected uncleanly is kept (KIP-704)
}
# fmt: on


@dataclass(frozen=True, slots=True)
class Rules:
    """One column of the table, with the release and the protocol that picked it."""

    release: str
    inter_broker_protocol: str
    design: str
    registers_first: bool
    registers_with_version: bool
    elects_with_epoch: bool
    follows_epoch: bool
    looks_before_electing: bool
    failover: str
    resignation: str
    awaits_requests: bool
    resigns_when_deleted: bool
    failed_failover: str
    resigns_when_replaced: bool
    resigns_unlocked: bool
    skips_own_session: bool
    listens_in_office: bool
    mute_send: str
    idle_scheduler: str
    lost_epoch: str
    root_paths: tuple[str, ...]
    names_cluster: bool
    own_znode: str
    topic_configs: bool
    replica_table: str
    offline_again: bool
    dead_at_startup: str
    replicas_of_brokers: str
    offline_order: str
    shutdown_skips_deleted: bool
    shutdown_order: str
    unclean: str
    unclean_default: bool
    last_isr_member: str
    leaderless: str
    broker_order: str
    told_of_smaller_isr: str
    empty_metadata: str
    metadata_for_nothing: bool
    new_replica_reads: str
    told_of_newcomer: str
    told_of_any_death: bool
    refuses_dead_targets: bool
    forbidden_deletion: str
    deletes_topics: bool
    halts_what_is_asked: bool
    doomed_election: str
    lone_replica_is_moved: bool
    doomed_metadata: str
    newcomer_hears_of_doomed: bool
    deleted_together: bool
    doomed_isr_is_told: bool
    doomed_partitions_go: str
    dead_replica_fails: bool
    reverts_expansion: bool
    unled_replica: str
    unled_doomed_replica: str
    rereads_assignment: bool
    empty_stop_replica: bool
    leads_already: str
    stops_are_grouped: bool
    stop_replica_batched: bool
    bumped_epoch_is_cached: bool
    added_replica_is_new: bool
    notes_complete_moves: bool
    reassignment: str
    reassigns_on_request: bool
    rebalances_in_sync_alone: bool
    preempted_are_told: tuple[str, ...]
    metadata_answers: bool
    broker_epochs: bool
    strangers_obey: bool
    deletes_logs: bool
    old_leader_epoch: str
    fetch_names_epoch: bool
    outlives_session: bool
    reads_from_the_dead: bool
    fetches_to_the_end: bool
    waits_for_fetch: bool
    fenced_writes: bool
    pipelined: bool
    offline_at_startup: bool
    outlives_log_dir: bool
    truncate_to: str
    rejoins_at: str
    fenced_fetches: bool
    untold_death: str
    min_insync_replicas: str
    config_change: int
    isr_of_the_living: bool
    failed_alter_isr: str
    controller_znode: int
    broker_znode: int
    topic_znode: int
    alter_isr: bool
    isr_notifications: bool
    stop_replica_by_partition: bool
    topic_ids: bool
    features: bool
    feature_znode: int
    takes_producer_ids: bool
    leader_recovery: bool

    def but(self, **changes: Any) -> Rules:
        """The same column with some rules changed, as a "what if". Raises TypeError for a rule that does not exist."""
        return replace(self, **changes)


@cache
def rules(release: str, inter_broker_protocol: str | None = None) -> Rules:
    """The rules in force in `release` ("0.8.1", "2.8", "2.8.2"); the latest row that is not later wins.

    Raises ValueError for what is no release from 0.8.0 to 3.9.
    """
    protocol = inter_broker_protocol or release
    key(protocol)  # what does not look like a release is refused
    if not key(FIRST_RELEASE) <= key(release) < (*key(LAST_RELEASE), 1_000):
        raise ValueError(f"{release!r} is no release from {FIRST_RELEASE} to {LAST_RELEASE}, the last one with ZooKeeper")
    chosen = {name: pick(rows, release) for name, rows in RULES.items()}
    chosen |= {name: pick(rows, protocol) for name, rows in PROTOCOL_RULES.items()}
    return Rules(release, protocol, **chosen)


KAFKA_0_8_0, KAFKA_0_8_1, KAFKA_0_8_2 = rules("0.8.0"), rules("0.8.1"), rules("0.8.2")
KAFKA_0_9_0, KAFKA_0_10_2, KAFKA_0_11_0 = rules("0.9.0"), rules("0.10.2"), rules("0.11.0")
KAFKA_1_0, KAFKA_1_1, KAFKA_2_4, KAFKA_2_8, KAFKA_3_9 = rules("1.0"), rules("1.1"), rules("2.4"), rules("2.8"), rules("3.9")


# ---------------------------------------------------------------- the group coordinator, since 0.9

# fmt: off
GROUP_RULES: dict[str, tuple[tuple[str, Any], ...]] = {
    # rule                    since, value ...                       what it decides
    "keeps_empty_groups":     (("0.9.0", False), ("0.10.1", True)),  # a group without members is Empty, not Dead (KAFKA-2720)
    "awaiting_name":          (("0.9.0", "AwaitingSync"), ("1.1.0", "CompletingRebalance")),  # one state, two names
    "rebalance_timeouts":     (("0.9.0", False), ("0.10.1", True)),  # apart from session timeouts (KIP-62)
    "initial_delay":          (("0.9.0", False), ("0.11.0", True)),  # an Empty group waits for more members (KIP-134)
    "new_member_timeout_ms":  (("0.9.0", None), ("2.1.0", 300_000)),  # how long a newcomer's JoinGroup is parked (KAFKA-7610)
    "known_member_ids":       (("0.9.0", False), ("2.2.0", True)),   # an id is handed out before a member is added (KIP-394)
    "limits_size":            (("0.9.0", False), ("2.2.0", True)),   # group.max.size (KIP-389)
    "static_rejoin":          (("0.9.0", "unknown"), ("2.3.0", "current"), ("2.6.0", "stored")),  # of a static member (KIP-345)
    "sync_timeout":           (("0.9.0", False), ("2.8.0", True)),   # who does not sync in time is removed (KAFKA-12487)
    "loading_first":          (("0.9.0", False), ("2.0.0", True)),   # asked before ownership; SyncGroup asks at all (KAFKA-6446)
    "dead_error":             (("0.9.0", "UNKNOWN_MEMBER_ID"), ("2.3.0", "COORDINATOR_NOT_AVAILABLE")),  # of a Dead group
    "error_generation":       (("0.9.0", 0), ("2.2.0", -1)),         # in the answer to a JoinGroup that is refused
    "first_protocols":        (("0.9.0", "any"), ("2.2.0", "some")),  # what the first member of a group must offer
    "removed_is_told":        (("0.9.0", False), ("2.1.0", True)),   # a removed member's parked JoinGroup is answered
    "heartbeat_if_awaiting":  (("0.9.0", "refused to all"), ("0.10.1", "refused"), ("2.3.0", "refused to this generation"),
                               ("2.6.0", "accepted")),               # a heartbeat while the assignment is awaited (KAFKA-9935)
    "touch_if_preparing":     (("0.9.0", False), ("0.10.1", True)),  # a heartbeat then counts for the session
    "commit_touches":         (("0.9.0", False), ("0.10.1", True)),  # and so does an offset commit
    "commit_checks":          (("0.9.0", "state first"), ("2.4.0", "member first")),  # while the assignment is awaited
    "leave_answer":           (("0.9.0", "one code"), ("2.4.0", "a code each")),  # (KIP-345)
    "names_protocols":        (("0.9.0", False), ("2.5.0", True)),   # in answers to JoinGroup and SyncGroup (KIP-559)
    "fetch_error":            (("0.9.0", "each partition"), ("0.10.2", "top level")),  # (KIP-88), and null then means all
    "offsets_need_group":     (("0.9.0", False), ("0.10.1", True)),  # offsets live in a group, not beside the groups
    "expiry":                 (("0.9.0", "commit"), ("2.1.0", "empty"), ("2.4.0", "unsubscribed")),  # (KIP-211, KAFKA-7437)
    "append_errors":          (("0.9.0", "few"), ("0.10.1", "all")),  # which of them are translated (KAFKA-4086)
    "transaction_checks":     (("0.9.0", False), ("2.5.0", True)),   # member and generation of such a commit (KIP-447)
    "coordinator_epochs":     (("0.9.0", False), ("2.8.0", True)),   # old elections and resignations are ignored (KAFKA-12460)
}
GROUP_PROTOCOL_RULES: dict[str, tuple[tuple[str, Any], ...]] = {
    "group_value":            (("0.9.0", 0), ("0.10.1", 1), ("2.1", 2), ("2.3", 3)),  # the version of a group's record
    "offset_value":           (("0.9.0", 1), ("2.1", 3)),            # and of an offset's, unless it has an expiry time
}
# fmt: on


@dataclass(frozen=True, slots=True)
class GroupRules:
    """One column of the group coordinator's rows."""

    release: str
    keeps_empty_groups: bool
    awaiting_name: str
    rebalance_timeouts: bool
    initial_delay: bool
    new_member_timeout_ms: int | None
    known_member_ids: bool
    limits_size: bool
    static_rejoin: str
    sync_timeout: bool
    loading_first: bool
    dead_error: str
    error_generation: int
    first_protocols: str
    removed_is_told: bool
    heartbeat_if_awaiting: str
    touch_if_preparing: bool
    commit_touches: bool
    commit_checks: str
    leave_answer: str
    names_protocols: bool
    fetch_error: str
    offsets_need_group: bool
    expiry: str
    append_errors: str
    transaction_checks: bool
    coordinator_epochs: bool
    group_value: int
    offset_value: int

    def but(self, **changes: Any) -> GroupRules:
        """The same column with some rules changed. Raises TypeError for a rule that does not exist."""
        return replace(self, **changes)


@cache
def group_rules(release: str, inter_broker_protocol: str | None = None) -> GroupRules:
    """The group coordinator's rules in `release`. Raises ValueError for one before 0.9, where there is none, or after 3.9."""
    if not key("0.9.0")[:2] <= key(release) < (*key(LAST_RELEASE), 1_000):
        raise ValueError(f"{release!r} has no group coordinator of this kind: name a release from 0.9 to {LAST_RELEASE}")
    chosen = {name: pick(rows, release) for name, rows in GROUP_RULES.items()}
    chosen |= {name: pick(rows, inter_broker_protocol or release) for name, rows in GROUP_PROTOCOL_RULES.items()}
    return GroupRules(release, **chosen)
