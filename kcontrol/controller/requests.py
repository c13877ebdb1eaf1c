"""What brokers are told: one batch, filled while a machine moves its subjects and folded into requests when it is done.

Source: ControllerBrokerRequestBatch in ControllerChannelManager.scala (2.8).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kcontrol.controller.context import ControllerContext
from kcontrol.effects import Effect, Send
from kcontrol.generations import EVENT_THREAD
from kcontrol.model import EPOCH_DURING_DELETE, LEADER_DURING_DELETE, NO_EPOCH, LeaderAndIsr, ReplicaAssignment, TopicPartition


class LeaderAndIsrPartition(NamedTuple):
    """What LeaderAndIsr says of a partition, under the protocol's names."""

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
    """What UpdateMetadata says of a partition."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    zk_version: int
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...]


class StopReplicaPartition(NamedTuple):
    """What StopReplica says of a partition."""

    leader_epoch: int
    delete: bool


def _fields(entry: Any) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in entry._asdict().items()}


@dataclass(frozen=True, slots=True)
class Requests:
    """A folded batch: per broker the partitions it is told about. Values are shared between brokers.

    They are sent in the order LeaderAndIsr, UpdateMetadata, StopReplica.
    """

    controller_id: int
    controller_epoch: int
    broker_epochs: dict[int, int]
    leader_and_isr: dict[int, dict[TopicPartition, LeaderAndIsrPartition]]
    update_metadata_to: tuple[int, ...]
    update_metadata: dict[TopicPartition, UpdateMetadataPartition]
    live_brokers: tuple[int, ...]
    stop_replica: dict[int, dict[TopicPartition, StopReplicaPartition]]

    def plain(self) -> dict[str, Any]:
        """Each partition's values once and, per broker, the positions of those that it is told; nothing that is empty."""
        places: dict[Any, int] = {}
        for partitions in self.leader_and_isr.values():
            for told in partitions.items():
                places.setdefault(told, len(places))
        values = [{"partition": str(tp), **_fields(entry)} for tp, entry in places]
        to = {str(broker): [places[told] for told in partitions.items()] for broker, partitions in self.leader_and_isr.items()}
        plain: dict[str, Any] = {"controller_id": self.controller_id, "controller_epoch": self.controller_epoch}
        plain["live_brokers"] = list(self.live_brokers)
        if to:
            plain["leader_and_isr"] = {"values": values, "to": to}
        if self.update_metadata_to:
            metadata = {str(tp): _fields(entry) for tp, entry in self.update_metadata.items()}
            plain["update_metadata"] = {"partitions": metadata, "to": list(self.update_metadata_to)}
        if self.stop_replica:
            stopped = {str(b): {str(tp): _fields(entry) for tp, entry in told.items()} for b, told in self.stop_replica.items()}
            plain["stop_replica"] = {"to": stopped}
        return plain

    def one_kind_of_stop_each(self) -> Iterator[Requests]:
        """The same with the replicas to be deleted, then those that are only stopped: older protocols say it once a request."""
        kinds = [
            {
                b: found
                for b, told in self.stop_replica.items()
                if (found := {tp: e for tp, e in told.items() if e.delete is delete})
            }
            for delete in (True, False)
        ]
        first, *others = [kind for kind in kinds if kind] or [{}]
        yield replace(self, stop_replica=first)
        for kind in others:
            yield replace(self, leader_and_isr={}, update_metadata_to=(), update_metadata={}, stop_replica=kind)

    def one_stop_each(self, *, common_first: bool, grouped: bool) -> Iterator[Requests]:
        """The same without StopReplica, then a StopReplica for each replica, for each broker after a common one or not.

        The common one is empty, unless it is `grouped`: then it has all replicas that stay on disk, if there are any.
        """
        yield replace(self, stop_replica={})
        alone = replace(self, leader_and_isr={}, update_metadata_to=(), update_metadata={})
        for broker, stopped in self.stop_replica.items():
            common = {tp: entry for tp, entry in stopped.items() if grouped and not entry.delete}
            if common_first:
                yield replace(alone, stop_replica={broker: common})
            yield from (replace(alone, stop_replica={broker: {tp: entry}}) for tp, entry in stopped.items() if tp not in common)

    def queued(self) -> list[tuple[str, int]]:
        """Each request as (api, broker), in the order of sending."""
        return [
            *(("LeaderAndIsr", b) for b in self.leader_and_isr),
            *(("UpdateMetadata", b) for b in self.update_metadata_to),
            *(("StopReplica", b) for b in self.stop_replica),
        ]


@dataclass(slots=True)
class RequestBatch:
    """Three accumulators. `yield from batch.send(ctx)` folds them, hands them over and leaves them empty."""

    leader_and_isr: dict[int, dict[TopicPartition, LeaderAndIsrPartition]] = field(default_factory=dict)
    update_metadata_to: set[int] = field(default_factory=set)
    update_metadata: dict[TopicPartition, UpdateMetadataPartition] = field(default_factory=dict)
    stop_replica: dict[int, dict[TopicPartition, StopReplicaPartition]] = field(default_factory=dict)

    def add_leader_and_isr(
        self,
        ctx: ControllerContext,
        brokers: Iterable[int],
        tp: TopicPartition,
        value: LeaderAndIsr,
        assignment: ReplicaAssignment,
        *,
        is_new: bool,
    ) -> None:
        """Tell `brokers` who leads, and everybody alive through UpdateMetadata. Once new, a partition stays new in this batch."""
        entry = LeaderAndIsrPartition(
            value.leader, value.leader_epoch, value.isr, value.controller_epoch, value.zk_version, *assignment, is_new
        )
        for broker in brokers:
            if broker >= 0:
                told = self.leader_and_isr.setdefault(broker, {})
                earlier = told.get(tp)
                told[tp] = entry._replace(is_new=True) if earlier and earlier.is_new else entry
        self.add_update_metadata(ctx, ctx.live_or_shutting_down_broker_ids, (tp,))

    def add_update_metadata(self, ctx: ControllerContext, brokers: Iterable[int], partitions: Iterable[TopicPartition]) -> None:
        """Tell `brokers` about those of `partitions` whose leadership is known; the brokers of a batch share all partitions.

        No partition means every one that is led, or none, as the release has it. Those of topics that are being deleted have a
        leader of -2, and before 2.0 are told every time, named or not.
        """
        self.update_metadata_to.update(b for b in brokers if b >= 0)
        everything = ctx.leadership if ctx.rules.empty_metadata == "everything" else ()
        every_time = ctx.topics_to_be_deleted if ctx.rules.doomed_metadata == "every time" else ()
        doomed = tuple(tp for tp in ctx.leadership if tp.topic in every_time) if every_time else ()
        for tp in (*(tuple(partitions) or everything), *doomed):
            value = ctx.leadership.get(tp)
            if value is None:
                continue
            # A topic whose znode was deleted by hand is led and has no replicas: before 1.1 whoever tells brokers of it fails.
            replicas = ctx.replicas(tp) if ctx.rules.design == EVENT_THREAD else ctx.assignments[tp].replicas
            gone = tuple(b for b in replicas if not ctx.is_replica_online(b, tp))
            if tp.topic in ctx.topics_to_be_deleted:
                value = LeaderAndIsr(LEADER_DURING_DELETE, value.isr, 0, 0, value.controller_epoch)
            self.update_metadata[tp] = UpdateMetadataPartition(
                value.leader, value.leader_epoch, value.isr, value.controller_epoch, value.zk_version, replicas, gone
            )

    def add_stop_replica(self, ctx: ControllerContext, brokers: Iterable[int], tp: TopicPartition, *, delete: bool) -> None:
        """Tell `brokers` to stop the replica, and to delete it if this or an earlier call of the batch says so."""
        cached = ctx.leadership.get(tp)
        leader_epoch = (
            EPOCH_DURING_DELETE if ctx.is_queued_for_deletion(tp.topic) else cached.leader_epoch if cached else NO_EPOCH
        )
        for broker in brokers:
            if broker >= 0:
                told = self.stop_replica.setdefault(broker, {})
                earlier = told.get(tp)
                told[tp] = StopReplicaPartition(leader_epoch, delete or (earlier is not None and earlier.delete))

    def fold(self, ctx: ControllerContext) -> Requests:
        """The requests of this batch, to the brokers that are live or shutting down."""
        epochs = ctx.live_broker_epochs
        known = ctx.live_or_shutting_down_broker_ids
        told = self.update_metadata_to if self.update_metadata or ctx.rules.metadata_for_nothing else ()
        return Requests(
            ctx.broker_id,
            ctx.controller_epoch,
            {b: epochs[b] for b in known},
            {b: self.leader_and_isr[b] for b in sorted(self.leader_and_isr) if b in epochs},
            tuple(b for b in sorted(told) if b in epochs),
            self.update_metadata,
            known,
            {b: self.stop_replica[b] for b in sorted(self.stop_replica) if b in epochs},
        )

    def send(self, ctx: ControllerContext) -> Generator[Effect, None, None]:
        """Fold and hand over what has been gathered, if there is anything for a broker that is there."""
        requests = self.fold(ctx)
        self.leader_and_isr, self.update_metadata_to, self.update_metadata, self.stop_replica = {}, set(), {}, {}
        if not ctx.rules.stop_replica_batched:
            rules = ctx.rules
            messages = requests.one_stop_each(common_first=rules.empty_stop_replica, grouped=rules.stops_are_grouped)
        else:
            messages = iter((requests,)) if ctx.rules.stop_replica_by_partition else requests.one_kind_of_stop_each()
        for message in messages:
            if message.queued():
                yield Send(message)


def update_metadata(
    ctx: ControllerContext, brokers: Iterable[int], partitions: Iterable[TopicPartition] = ()
) -> Generator[Effect, None, None]:
    """One UpdateMetadata to each of `brokers`, outside the machines. Source: KafkaController.sendUpdateMetadataRequest (2.8)."""
    batch = RequestBatch()
    batch.add_update_metadata(ctx, brokers, partitions)
    yield from batch.send(ctx)
