"""INVARIANTS: Kafka's guarantees about a cluster, one row each, with the first release that gives the guarantee.

A row that holds after every step checks the partitions in the records of the last step. A row that holds at quiet checks the
whole cluster when the cluster has no action to perform by itself (`is_at_rest`). The guarantees are about brokers: as soon as a
client that is no broker has written a znode on which a row depends, the row is not checked for the rest of the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kcontrol.cluster import actions
from kcontrol.core import znodes as zk
from kcontrol.core.model import LEADER_DURING_DELETE, LeaderAndIsr, PartitionReplica, TopicPartition
from kcontrol.core.releases import is_since
from kcontrol.journal.journal import Record
from kcontrol.search import group_invariants

if TYPE_CHECKING:
    from kcontrol.cluster.world import World

Property = Callable[["World"], str | None]
"""A function that takes a World and returns None while the property holds, otherwise the sentence of its violation."""

STEP, QUIET = "after every step", "at quiet"


@dataclass(frozen=True)
class Invariant:
    """One guarantee of Kafka. Called with a world, it returns the sentence of a violation, or None."""

    # Such as "leader in ISR".
    name: str
    # The guarantee, as one sentence.
    sentence: str
    # The first release that gives the guarantee.
    since: str
    # STEP: checked after every step. QUIET: checked while the cluster has no action to perform by itself.
    when: str
    # Kinds of journal records: only a step with such a record can break the guarantee. Empty for QUIET.
    after: frozenset[str]
    # A regular expression, such as "set /controller". After such a write by a client that is no broker, the guarantee is not
    # checked any more.
    voiding_path: str
    # Checks a world, whatever its release, and returns the sentence of a violation, or None.
    broken: Property
    # The methods of Kafka that keep the guarantee, or the ticket of the fix, with releases.
    source: str

    def is_promised_by(self, release: str) -> bool:
        """A release "2.8" means its newest patch, so a guarantee of 2.8.1 on counts."""
        return is_since(self.since, release)

    def is_void(self, world: World) -> bool:
        """A client that is no broker has written a znode on which this guarantee depends."""
        return any(a[0] in ("set", "create", "delete") and re.match(self.voiding_path, f"{a[0]} {a[1]}") for a in world.done)

    def __call__(self, world: World) -> str | None:
        """Return the sentence of a violation, with the invariant's name before it.

        Return None if the guarantee holds, if the world's release does not give it, or if a client that is no broker has written
        a znode on which it depends.
        """
        if not self.is_promised_by(world.settings.release):
            return None
        found = self.broken(world)
        return None if found is None or self.is_void(world) else f"{self.name}: {found}"


# ---------------------------------------------------------------- writes of state znodes


class StateWrite(NamedTuple):
    """One write of a state znode: its journal record, the partition, and the new value of the znode."""

    record: Record
    partition: TopicPartition
    value: LeaderAndIsr
    # Whether the write created the znode.
    created: bool
    # True for a controller's transition, False for an ISR change of a leader.
    decided: bool


def _writes(records: Iterable[Record]) -> Iterator[StateWrite]:
    for record in records:
        if record.kind == "change" and record.fields["write"]:
            subject = record.fields["subject"]
            tp = subject.topic_partition if isinstance(subject, PartitionReplica) else subject
            yield StateWrite(record, tp, record.fields["leadership"], record.fields["write"] == "create", True)
        elif record.kind == "write" and record.fields["error"] is None:
            for kind, path, data, version, _ in record.fields["ops"]:
                tp = zk.parse_state_path(path) if kind in ("create", "set") else None
                if tp and (value := _decoded(zk.decode_state, data, version)):
                    yield StateWrite(record, tp, value, kind == "create", False)


def _decoded(decode: Callable[..., Any], data: bytes, *arguments: Any) -> Any:
    """None for data that a client that is no broker has made unreadable."""
    try:
        return decode(data, *arguments)
    except zk.MalformedZnode:
        return None


def _written(world: World) -> list[StateWrite]:
    """Return the successful writes of state znodes by brokers in the world's last step."""
    return [write for write in _writes(world.last_step) if write.record.id.broker is not None]


def _earlier(world: World, record: Record) -> Iterator[StateWrite]:
    """Yield the successful writes to the state znodes of all partitions before `record`, the latest record first."""
    records = world.journal.records
    at = next(i for i in range(len(records) - 1, -1, -1) if records[i] is record)
    return _writes(records[i] for i in range(at - 1, -1, -1))


def stored(world: World) -> Iterator[tuple[TopicPartition, LeaderAndIsr]]:
    """Without state znodes that cannot be read, because a client has written them."""
    for path, znode in world.zk.tree().items():
        if (tp := zk.parse_state_path(path)) and (value := _decoded(zk.decode_state, znode.data, znode.stat.version)):
            yield tp, value


def read_znode(world: World, path: str, decode: Callable[..., Any]) -> Any:
    """Return `decode(data)` for the data of the znode at `path`; None without the znode, or if `decode` raises MalformedZnode."""
    (znode,) = world.tool.read([path], False)
    return _decoded(decode, znode.data) if znode else None


def _stored(world: World, tp: TopicPartition) -> LeaderAndIsr | None:
    (znode,) = world.tool.read([zk.state_path(tp)], False)
    return _decoded(zk.decode_state, znode.data, znode.stat.version) if znode else None


def _newest_epoch(world: World) -> int:
    return read_znode(world, zk.CONTROLLER_EPOCH, zk.decode_controller_epoch) or 0


# ---------------------------------------------------------------- the properties


def leader_in_isr(world: World) -> str | None:
    for _, tp, value, *_ in _written(world):
        if value.leader >= 0 and value.leader not in value.isr:
            return f"{tp}: leader {value.leader} is not in ISR {list(value.isr)}"
    return None


def isr_in_assignment(world: World) -> str | None:
    for _, tp, value, *_ in _written(world):
        topic = read_znode(world, zk.topic_path(tp.topic), zk.decode_topic)
        replicas = topic.partitions[tp.partition].replicas if topic and tp.partition in topic.partitions else value.isr
        if unassigned := [b for b in value.isr if b not in replicas]:
            return f"{tp}: {unassigned} of ISR {list(value.isr)} are not among the replicas {list(replicas)}"
    return None


def isr_not_empty(world: World) -> str | None:
    return next((f"{tp}: the ISR is empty" for _, tp, value, *_ in _written(world) if not value.isr), None)


def leader_epoch_counts_decisions(world: World) -> str | None:
    for write in _written(world):
        tp, value = write.partition, write.value
        before = None if write.created else next((w.value for w in _earlier(world, write.record) if w.partition == tp), None)
        if before and before.zk_version != value.zk_version - 1:
            continue  # a write in between was performed, and its response was lost with the connection
        decided = write.decided or (before is not None and before[:2] == value[:2])  # only the epoch is new: a reassignment
        expected = before.leader_epoch + decided if before else 0
        if value.leader_epoch != expected:
            return f"{tp}: leader epoch {value.leader_epoch} was written where {expected} was due"
        if before and not decided and value.leader != before.leader:
            return f"{tp}: leader {value.leader} has replaced {before.leader} without a new leader epoch, in epoch {expected}"
    return None


def state_epoch_is_known(world: World) -> str | None:
    for _, tp, value, *_ in _written(world):
        if value.controller_epoch > (newest := _newest_epoch(world)):
            return f"{tp}: written under controller epoch {value.controller_epoch} when {newest} was the newest"
    return None


def _by_controllers(world: World) -> Iterator[StateWrite]:
    """Transitions and, since 2.7, ISR changes that a leader requests (AlterIsr)."""
    return (w for w in _written(world) if w.decided or world.settings.rules().alter_isr)


def deposed_controller_writes_nothing(world: World) -> str | None:
    for record, tp, value, *_ in _by_controllers(world):
        if value.controller_epoch < (newest := _newest_epoch(world)):
            return f"{tp}: broker {record.id.node} has written under epoch {value.controller_epoch} when {newest} was the newest"
    return None


def one_writer_per_epoch(world: World) -> str | None:
    for record, tp, value, *_ in _by_controllers(world):
        for other in _earlier(world, record):
            same_epoch = other.decided and other.value.controller_epoch == value.controller_epoch
            if same_epoch and other.record.id[:2] != record.id[:2]:
                writers = f"broker {record.id.node} has written after broker {other.record.id.node}"
                return f"{tp}: {writers} under the same controller epoch {value.controller_epoch}"
    return None


def _partitions_sent(requests: Any) -> set[tuple[TopicPartition, Any]]:
    """(partition, leader with ISR and epochs); partitions of topics in deletion are left out."""
    # The leader of a partition of a topic in deletion is -2.
    entries = {entry for partitions in requests.leader_and_isr.values() for entry in partitions.items()}
    return {(tp, entry) for tp, entry in entries | set(requests.update_metadata.items()) if entry.leader != LEADER_DURING_DELETE}


def no_request_before_its_write(world: World) -> str | None:
    for record in world.last_step:
        for tp, entry in _partitions_sent(record.fields["requests"]) if record.kind == "send" else ():
            sent = (entry.leader, entry.isr, entry.leader_epoch)
            now = _stored(world, tp)
            if now is None or now[:3] != sent:
                before = (w.value[:3] for w in _earlier(world, record) if w.partition == tp)
                if sent not in before:
                    return f"{tp}: leader {entry.leader}, ISR {list(entry.isr)}, epoch {entry.leader_epoch} was sent, not written"
    return None


def no_epoch_from_the_future(world: World) -> str | None:
    for record in world.last_step:
        if record.kind != "send":
            continue
        requests, newest = record.fields["requests"], _newest_epoch(world)
        latest = max((entry.controller_epoch for _, entry in _partitions_sent(requests)), default=0)
        if requests.controller_epoch > newest or latest > requests.controller_epoch:
            return f"a request names epochs {requests.controller_epoch} and {latest} when {newest} was the newest"
    return None


def active_controllers(world: World) -> list[int]:
    """Return the ids of the brokers that are controller in their own memory and are not frozen, in ascending order."""
    return [n for n, p in sorted(world.processes.items()) if p.driver.controller.is_active and not p.frozen]


def only_the_named_controller_writes(world: World) -> str | None:
    for record, tp, *_ in _by_controllers(world):
        if (named := read_znode(world, zk.CONTROLLER, zk.decode_controller)) != record.id.node:
            now = f"{zk.CONTROLLER} names broker {named}" if named is not None else f"{zk.CONTROLLER} does not exist"
            return f"{tp}: broker {record.id.node} has written while {now}"
    return None


def leaders_know(world: World) -> str | None:
    """Check that each running broker that a state znode names as leader has received a LeaderAndIsr about the partition.

    Return the sentence of a violation, or None.
    """
    # Between two controllers a leader may still wait for its LeaderAndIsr.
    if len(active_controllers(world)) != 1:
        return None
    deleted = {action[1] for action in world.done if action[0] == "delete_topic"}
    for tp, value in stored(world):
        p = world.processes.get(value.leader)
        if p and not p.frozen and tp.topic not in deleted and tp not in p.driver.broker.hosted:
            return f"{tp}: broker {value.leader} is the leader in epoch {value.leader_epoch}, and does not know it"
    return None


def one_controller(world: World) -> str | None:
    """Apart from frozen brokers, only the one that `/controller` names is controller in its own memory."""
    named, active = read_znode(world, zk.CONTROLLER, zk.decode_controller), active_controllers(world)
    # Without `/controller` no broker is expected: a broker that reads a new `/controller` late misses its deletion, and holds
    # no election.
    expected = [n for n, p in world.processes.items() if n == named and not p.frozen]
    names = f"{zk.CONTROLLER} names broker {named}" if named is not None else f"{zk.CONTROLLER} does not exist"
    return None if active == expected else f"{names}, and the active controllers are {active}"


def cache_equals_znode(world: World) -> str | None:
    latest: dict[TopicPartition, StateWrite] = {}
    for write in _writes(reversed(world.journal.records)):
        latest.setdefault(write.partition, write)
    alter_isr = world.settings.rules().alter_isr
    for n in active_controllers(world):
        driver = world.processes[n].driver
        for tp, cached in driver.controller.leadership.items():
            last = latest.get(tp)
            mine = last is not None and (last.decided or alter_isr) and last.record.id[:2] == (n, driver.incarnation)
            now = _stored(world, tp) if mine else None
            if now and cached[:4] != now[:4]:
                return f"{tp}: broker {n} has {cached[:4]} in memory after it wrote {now[:4]}"
    return None


def _ops(record: Record) -> Iterator[tuple[str, str]]:
    """Yield the kind ("create", "set", "delete" or "check") and path of each operation in a successful `write` record."""
    if record.kind == "write" and record.fields["error"] is None:
        yield from ((kind, path) for kind, path, *_ in record.fields["ops"])


def request_outlives_topic(world: World) -> str | None:
    """Check that a broker deletes a znode below `/admin/delete_topics` only after the topic's znode was deleted.

    Return the sentence of a violation, or None.
    """
    for record in world.last_step:
        for kind, path in _ops(record) if record.id.node in world.processes else ():
            folder, _, topic = path.rpartition("/")
            controller = world.processes[record.id.node].driver.controller
            # The request to delete a topic that the controller does not know may be removed at any time.
            is_known = topic in controller.all_topics and controller.deletes_topics
            if (kind, folder) == ("delete", zk.DELETE_TOPICS) and is_known and not _has_gone(world, topic, record):
                return f"{topic}: broker {record.id.node} has deleted {path} while {zk.topic_path(topic)} existed"
    return None


def _has_gone(world: World, topic: str, before: Record) -> bool:
    """Whether the topic's znode was deleted after its latest request and before the record `before`."""
    records, requested = world.journal.records, ("create", zk.delete_topic_path(topic))
    at = next(i for i in range(len(records) - 1, -1, -1) if records[i] is before)
    done = (op for i in range(at - 1, -1, -1) for op in _ops(records[i]))
    return next((op for op in done if op in (requested, ("delete", zk.topic_path(topic)))), requested) != requested


# ---------------------------------------------------------------- the table

_WRITING, _SENDING = frozenset({"change", "write"}), frozenset({"send"})
_GROUPS, _ANSWERS = frozenset({"group"}), frozenset({"respond"})
_NEVER = r"(?!)"  # no write to a znode concerns a group
_STATE = r"\w+ /brokers/topics/"
_EPOCH = rf"\w+ {zk.CONTROLLER_EPOCH}$"
_CONTROLLER_ZNODE = rf"(set|create) {zk.CONTROLLER}$"

# fmt: off
INVARIANTS: tuple[Invariant, ...] = (
    Invariant("leader in ISR", "The leader of a partition is in its ISR.",
              "0.8.0", STEP, _WRITING, _STATE, leader_in_isr,
              "Election.scala, and ReplicaStateMachine.removeReplicasFromIsr, which leaves leader -1 behind (2.8)"),
    Invariant("ISR in assignment", "Every member of an ISR is an assigned replica.",
              "0.8.1", STEP, _WRITING, _STATE, isr_in_assignment,
              "PartitionStateMachine.initializeLeaderAndIsrForPartitions, Partition.expandIsr (2.8)"),
    Invariant("ISR never empty", "An ISR keeps its last member, even if this broker ends.",
              "1.1", STEP, _WRITING, _STATE, isr_not_empty,
              "ReplicaStateMachine.doRemoveReplicasFromIsr (1.1)"),
    Invariant("leader epoch counts decisions",
              "The leader epoch begins at 0, grows by one with every decision of a controller, and does not change when a leader "
              "changes the ISR.",
              "0.8.0", STEP, _WRITING, _STATE, leader_epoch_counts_decisions,
              "LeaderAndIsr.newLeaderAndIsr, LeaderAndIsr.newEpochAndZkVersion (2.8)"),
    Invariant("state epoch is known", "No state znode names a controller epoch beyond the one in /controller_epoch.",
              "0.8.0", STEP, _WRITING, f"{_STATE}|{_EPOCH}", state_epoch_is_known,
              "KafkaZkClient.registerControllerAndIncrementControllerEpoch (2.8)"),
    Invariant("a deposed controller writes nothing",
              "Once a newer controller has registered, no decision is written under an older epoch.",
              "2.1", STEP, _WRITING, _EPOCH, deposed_controller_writes_nothing,
              "KAFKA-6082; KafkaZkClient.retryRequestsUntilConnected with an expected epoch version (2.1)"),
    Invariant("one writer per epoch", "Under one controller epoch the decisions of one broker alone are written.",
              "2.1", STEP, _WRITING, rf"{_EPOCH}|{_CONTROLLER_ZNODE}", one_writer_per_epoch,
              "KAFKA-6082; KafkaZkClient.registerControllerAndIncrementControllerEpoch (2.1)"),
    Invariant("only the named controller writes", "A decision is written only by the broker that /controller names.",
              "1.1.0", STEP, _WRITING, rf"\w+ {zk.CONTROLLER}$", only_the_named_controller_writes,
              "KAFKA-3083; KafkaController.startup, which opens a session after Expire has begun (1.1)"),
    Invariant("no request before its write", "The leadership in a request was in the partition's state znode before.",
              "0.8.0", STEP, _SENDING, _STATE, no_request_before_its_write,
              "ZkPartitionStateMachine.doElectLeaderForPartitions, AbstractControllerBrokerRequestBatch (2.8)"),
    Invariant("no epoch from the future",
              "No request has a controller epoch above its sender's, and no sender's is above /controller_epoch.",
              "1.1.0", STEP, _SENDING, f"{_STATE}|{_EPOCH}", no_epoch_from_the_future,
              "AbstractControllerBrokerRequestBatch.sendRequestsToBrokers (2.8); ReplicaStateMachine.handleStateChange (1.0),"
              " NewReplica, reads what the next controller may have written"),
    Invariant("a request outlives its topic",
              "The controller removes a known topic from /admin/delete_topics only after the topic's znode is gone.",
              "0.8.1", STEP, frozenset({"write"}), r"\w+ /(brokers/topics|admin/delete_topics)", request_outlives_topic,
              "TopicDeletionManager.completeDeleteTopic (0.8.1, 2.8)"),
    Invariant("one controller",
              "The broker that /controller names is the only active controller, and it is active while it runs.",
              "0.11.0", QUIET, frozenset(), rf"{_EPOCH}|{_CONTROLLER_ZNODE}", one_controller,
              "KafkaController.Reelect (0.11.0), KafkaController.maybeResign (2.8)"),
    Invariant("cache equals znode", "If the controller was the last to write a state znode, its memory equals the znode.",
              "0.8.0", QUIET, frozenset(), _STATE, cache_equals_znode,
              "ControllerContext.putPartitionLeadershipInfo and its callers (2.8)"),
    Invariant("leaders know",
              "A running broker that a state znode names as leader has received LeaderAndIsr about the partition.",
              "2.2.0", QUIET, frozenset(), rf"{_STATE}|{_EPOCH}|\w+ {zk.CONTROLLER}$", leaders_know,
              "KAFKA-7235; KafkaController.processBrokerChange, bouncedBrokerIds (2.2)"),
    Invariant("one leader, one protocol",
              "In CompletingRebalance and Stable one member leads the group, every member supports its protocol, and all members "
              "are answered with one generation, one protocol and one leader.",
              "0.9", STEP, _GROUPS | _ANSWERS, _NEVER, group_invariants.one_leader_and_protocol,
              "GroupMetadata.initNextGeneration and selectProtocol, GroupCoordinator.onCompleteJoin (0.9, 2.8)"),
    Invariant("assigned once",
              "A Stable group assigns each partition of a topic to one member that subscribes to the topic; in the first round "
              "of cooperative-sticky some partitions have no owner.",
              "0.9", STEP, _GROUPS | _ANSWERS, _NEVER, group_invariants.assigned_once,
              "RangeAssignor.assign, RoundRobinAssignor.assign (0.9, 2.8), AbstractStickyAssignor.assign (2.8); KIP-429"),
    Invariant("answered once", "A coordinator sends at most one response to a request.",
              "0.9", STEP, _ANSWERS, _NEVER, group_invariants.answered_once,
              "GroupCoordinator.onCompleteJoin and propagateAssignment, which clear the callbacks (0.9, 2.8)"),
    Invariant("a parked member stays",
              "A session timeout removes no member whose JoinGroup or SyncGroup is parked; since 2.1 a new member is removed.",
              "0.9", STEP, frozenset({"begin"}), _NEVER, group_invariants.parked_members_stay,
              "GroupCoordinator.shouldKeepMemberAlive (0.9), MemberMetadata.hasSatisfiedHeartbeat (2.8)"),
    Invariant("a removed member has no deadline",
              "The session timeout of a member that has left the group begins no rebalance.",
              "2.0.1", STEP, frozenset({"begin"}), _NEVER, group_invariants.removed_members_start_nothing,
              "KAFKA-7196; GroupCoordinator.onCompleteJoin, removeHeartbeatForLeavingMember (2.0.1)"),
    Invariant("a generation never falls", "While a coordinator has a group in its cache, the group's generation never falls.",
              "0.9", STEP, _GROUPS, _NEVER, group_invariants.generation_never_falls,
              "GroupMetadata.initNextGeneration (0.9, 2.8)"),
    Invariant("committed offsets are stored",
              "Each committed offset in the cache of a coordinator that leads the partition is in its log, so it survives "
              "a move.",
              "0.9", QUIET, frozenset(), _NEVER, group_invariants.committed_offsets_are_stored,
              "GroupMetadataManager.storeOffsets, whose callback fills the cache, and loadGroupsAndOffsets (0.9, 2.8)"),
)
# fmt: on

ALWAYS: tuple[Invariant, ...] = tuple(row for row in INVARIANTS if row.when == STEP)
AT_REST: tuple[Invariant, ...] = tuple(row for row in INVARIANTS if row.when == QUIET)


def violation(world: World, properties: Iterable[Property] = ALWAYS) -> str | None:
    """The sentence about the first property that does not hold after the last step."""
    kinds = {record.kind for record in world.last_step}
    for holds in properties:
        # This step wrote no record that can break the invariant.
        if isinstance(holds, Invariant) and holds.when == STEP and holds.after.isdisjoint(kinds):
            continue
        if found := holds(world):
            return found
    return None


def is_at_rest(world: World) -> bool:
    """Return whether `World.run` finds nothing to do: no action of `actions.routine_actions`, such as a delivery or a timer."""
    return next(actions.routine_actions(world), None) is None
