"""Collects the requests that one call of a state machine sends to brokers.

They are LeaderAndIsr, UpdateMetadata and StopReplica. A later entry replaces an earlier entry for
the same broker and partition, but a flag "new" or "delete" that was true stays true. The journal
has one `send` record per batch.

Source: ControllerBrokerRequestBatch in ControllerChannelManager.scala (2.8).
"""

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kcontrol.controller.context import ControllerContext
from kcontrol.core.effects import Effect, Send
from kcontrol.core.model import (
    EPOCH_DURING_DELETE,
    LEADER_DURING_DELETE,
    NO_EPOCH,
    LeaderAndIsr,
    ReplicaAssignment,
    TopicPartition,
)


class LeaderAndIsrPartition(NamedTuple):
    """One partition in LeaderAndIsr: leadership, replicas, and the added and removed replicas.

    The fields have the protocol's names. `is_new` says that the broker gets a new replica.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    zk_version: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    is_new: bool


class UpdateMetadataPartition(NamedTuple):
    """One partition in UpdateMetadata: its leadership, its replicas, and the offline replicas.

    The fields have the protocol's names.
    """

    # -2 for a topic that is being deleted.
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    zk_version: int
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...]


class StopReplicaPartition(NamedTuple):
    """One partition in StopReplica: the leader epoch, and whether the replica's log is deleted."""

    leader_epoch: int
    delete: bool


LeaderAndIsrs = dict[int, dict[TopicPartition, LeaderAndIsrPartition]]
StopReplicas = dict[int, dict[TopicPartition, StopReplicaPartition]]
Description = tuple[LeaderAndIsr | None, ReplicaAssignment | None]


def _leadership_fields(value: LeaderAndIsr) -> tuple[int, int, tuple[int, ...], int, int]:
    """In the order of LeaderAndIsr and UpdateMetadata."""
    return value.leader, value.leader_epoch, value.isr, value.controller_epoch, value.zk_version


def _fields(entry: Any) -> dict[str, Any]:
    values = entry._asdict().items()
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values}


@dataclass(frozen=True, slots=True)
class Requests:
    """The LeaderAndIsr, UpdateMetadata and StopReplica requests of one batch, by broker."""

    # The id and the epoch of the sender.
    controller_id: int
    controller_epoch: int
    # The epochs of `live_brokers`.
    broker_epochs: dict[int, int]
    # By broker id: the partitions with their values.
    leader_and_isr: LeaderAndIsrs
    # All these brokers receive one UpdateMetadata, with the partitions `update_metadata`.
    update_metadata_to: tuple[int, ...]
    update_metadata: dict[TopicPartition, UpdateMetadataPartition]
    # All registered brokers.
    live_brokers: tuple[int, ...]
    # By broker id: the partitions with their values.
    stop_replica: StopReplicas

    def to_json(self) -> dict[str, Any]:
        """Return the requests as JSON types, as the journal record `send` has them.

        A kind of request that goes to no broker is left out.
        """
        places: dict[Any, int] = {}
        for partitions in self.leader_and_isr.values():
            for entry in partitions.items():
                places.setdefault(entry, len(places))
        # Each partition's values stand once in `values`; `to` has positions in this list by broker.
        values = [{"partition": str(tp), **_fields(value)} for tp, value in places]
        lists = self.leader_and_isr.items()
        to = {str(b): [places[entry] for entry in partitions.items()] for b, partitions in lists}
        plain: dict[str, Any] = {
            "controller_id": self.controller_id, "controller_epoch": self.controller_epoch,
            "live_brokers": list(self.live_brokers),
        }  # fmt: skip
        if to:
            plain["leader_and_isr"] = {"values": values, "to": to}
        if self.update_metadata_to:
            metadata = {str(tp): _fields(entry) for tp, entry in self.update_metadata.items()}
            plain["update_metadata"] = {"partitions": metadata, "to": list(self.update_metadata_to)}
        if self.stop_replica:
            plain["stop_replica"] = {"to": {}}
            for broker, stopped in self.stop_replica.items():
                entries = {str(tp): _fields(entry) for tp, entry in stopped.items()}
                plain["stop_replica"]["to"][str(broker)] = entries
        return plain

    def in_send_order(self) -> list[tuple[str, int]]:
        """Return (kind of request, broker id) for each request, in the order of sending."""
        return [
            *(("LeaderAndIsr", b) for b in self.leader_and_isr),
            *(("UpdateMetadata", b) for b in self.update_metadata_to),
            *(("StopReplica", b) for b in self.stop_replica),
        ]


@dataclass(slots=True)
class RequestBatch:
    """The LeaderAndIsr, UpdateMetadata and StopReplica entries that are sent together.

    `send_requests_to_brokers` sends the entries as requests, and empties the batch.
    """

    # By broker id, as `stop_replica`: the partitions with their values.
    leader_and_isr: LeaderAndIsrs = field(default_factory=dict)
    # All these brokers receive one UpdateMetadata, with the partitions `update_metadata`.
    update_metadata_to: set[int] = field(default_factory=set)
    update_metadata: dict[TopicPartition, UpdateMetadataPartition] = field(default_factory=dict)
    stop_replica: StopReplicas = field(default_factory=dict)
    # From which leadership and assignment `add_leader_and_isr` has made the partition's entry in
    # `update_metadata`: a state machine adds a partition once for each of its replicas.
    described: dict[TopicPartition, Description] = field(default_factory=dict)

    def add_leader_and_isr(
        self,
        ctx: ControllerContext,
        brokers: Iterable[int],
        tp: TopicPartition,
        value: LeaderAndIsr,
        assignment: ReplicaAssignment | None = None,
        *,
        is_new: bool = False,
    ) -> None:
        """Add LeaderAndIsr `value` for `brokers`, and UpdateMetadata for all registered brokers.

        `value` is the leadership of `tp`, `assignment` by default that in the context; `is_new`
        says that the replicas on `brokers` are new.

        Source: ControllerBrokerRequestBatch.addLeaderAndIsrRequestForBrokers (2.8).
        """
        lists = assignment or ctx.assignments[tp]
        entry = LeaderAndIsrPartition(*_leadership_fields(value), *lists, is_new)
        for broker in brokers:
            if broker in ctx.live_broker_epochs:
                entries = self.leader_and_isr.setdefault(broker, {})
                earlier = entries.get(tp)
                # Once an entry of this batch has `is_new`, later entries of the partition keep it.
                entries[tp] = entry._replace(is_new=True) if earlier and earlier.is_new else entry
        now = ctx.leadership.get(tp), ctx.assignments.get(tp)
        if self.described.get(tp) != now:
            self.described[tp] = now
            self.add_update_metadata(ctx, ctx.live_broker_epochs, (tp,))

    def add_update_metadata(
        self, ctx: ControllerContext, brokers: Iterable[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """Add `brokers` as receivers of UpdateMetadata, and the `partitions` that have leadership.

        Each receiver gets all partitions of the batch.

        Source: ControllerBrokerRequestBatch.addUpdateMetadataRequestForBrokers (2.8).
        """
        self.update_metadata_to.update(brokers)
        add = ctx.design.metadata_partitions
        for tp in add(ctx, partitions) if add else partitions:
            value = ctx.leadership.get(tp)
            if value is None:
                continue
            replicas = ctx.replicas(tp)
            offline = tuple(b for b in replicas if not ctx.is_replica_online(b, tp))
            # A topic that is being deleted has the leader -2. A topic whose znode an operator has
            # deleted has leadership, but no replicas.
            if tp.topic in ctx.topics_to_be_deleted:
                value = LeaderAndIsr(LEADER_DURING_DELETE, value.isr, 0, 0, value.controller_epoch)
            entry = UpdateMetadataPartition(*_leadership_fields(value), replicas, offline)
            self.update_metadata[tp] = entry

    def add_stop_replica(
        self, ctx: ControllerContext, brokers: Iterable[int], tp: TopicPartition, *, delete: bool
    ) -> None:
        """Add StopReplica of `tp` for each of `brokers`; `delete` says that the log is deleted.

        If the broker's earlier entry of this partition deletes the replica, the new entry deletes
        too.

        Source: ControllerBrokerRequestBatch.addStopReplicaRequestForBrokers (2.8).
        """
        cached = ctx.leadership.get(tp)
        leader_epoch = cached.leader_epoch if cached else NO_EPOCH
        if ctx.is_queued_for_deletion(tp.topic):
            leader_epoch = EPOCH_DURING_DELETE
        for broker in brokers:
            if broker in ctx.live_broker_epochs:
                entries = self.stop_replica.setdefault(broker, {})
                deletes = delete or (tp in entries and entries[tp].delete)
                entries[tp] = StopReplicaPartition(leader_epoch, deletes)

    def fold(self, ctx: ControllerContext) -> Requests:
        """Return the requests of this batch with the present controller epoch and broker epochs.

        A broker that `ctx.live_broker_epochs` does not have gets no request.
        """
        epochs = ctx.live_broker_epochs
        known = ctx.live_or_shutting_down_broker_ids
        receivers = tuple(b for b in sorted(self.update_metadata_to) if b in epochs)
        return Requests(
            ctx.broker_id, ctx.controller_epoch, {b: epochs[b] for b in known},
            dict(sorted(self.leader_and_isr.items())), receivers, self.update_metadata, known,
            dict(sorted(self.stop_replica.items())),
        )  # fmt: skip

    def send_requests_to_brokers(self, ctx: ControllerContext) -> Generator[Effect, None, None]:
        """Send the requests of this batch to the registered brokers, and empty the batch.

        Source: ControllerBrokerRequestBatch.sendRequestsToBrokers (2.8).
        """
        requests = self.fold(ctx)
        self.leader_and_isr, self.stop_replica = {}, {}
        self.update_metadata_to, self.update_metadata, self.described = set(), {}, {}
        divide = ctx.design.requests_to_send
        for message in divide(ctx, requests) if divide else (requests,):
            if message.in_send_order():
                yield Send(message)


def send_update_metadata_request(
    ctx: ControllerContext, brokers: Iterable[int], partitions: Iterable[TopicPartition] = ()
) -> Generator[Effect, None, None]:
    """Send one UpdateMetadata for `partitions` to each of `brokers`, in a new batch.

    Without `partitions` the request has only the live brokers; before 2.2 it also has all
    partitions.

    Source: KafkaController.sendUpdateMetadataRequest (2.8).
    """
    batch = RequestBatch()
    batch.add_update_metadata(ctx, brokers, partitions)
    yield from batch.send_requests_to_brokers(ctx)
