"""Decides, up to 2.5, which partitions UpdateMetadata contains and how a batch is divided.

A batch is divided into requests because one StopReplica cannot name all replicas of a broker.

Source: ControllerBrokerRequestBatch in ControllerChannelManager.scala (0.8.0 to 2.5).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from kcontrol.controller.context import ControllerContext
from kcontrol.controller.request_batch import Requests, StopReplicas
from kcontrol.core.model import TopicPartition


def metadata_partitions(
    ctx: ControllerContext, partitions: Iterable[TopicPartition]
) -> tuple[TopicPartition, ...]:
    """Return the partitions of an UpdateMetadata; before 2.2 an empty `partitions` means all.

    Before 2.0 all partitions of topics that are being deleted are added. Before 1.1 raises KeyError
    for a partition with leadership, but no assignment.

    Source: ControllerBrokerRequestBatch.addUpdateMetadataRequestForBrokers (0.8.1, 1.1, 2.0).
    """
    named = tuple(partitions)
    if not named and ctx.rules.empty_metadata == "all partitions":
        named = tuple(ctx.leadership)
    if ctx.rules.deleting_topic_metadata == "every time" and ctx.topics_to_be_deleted:
        named += tuple(tp for tp in ctx.leadership if tp.topic in ctx.topics_to_be_deleted)
    for tp in named if ctx.design.has_listeners else ():
        if tp in ctx.leadership:
            _ = ctx.assignments[tp]
    return named


def requests_to_send(ctx: ControllerContext, requests: Requests) -> Iterable[Requests]:
    """Divide the batch `requests` into the batches that the release sends one after the other.

    Only the StopReplica requests are divided. Before 0.9 an UpdateMetadata without partitions is
    left out.

    Source: ControllerBrokerRequestBatch.sendRequestsToBrokers (0.8.0 to 2.5).
    """
    rules = ctx.rules
    if not (requests.update_metadata or rules.sends_empty_metadata):
        requests = replace(requests, update_metadata_to=())
    # From 0.8.1 to 2.2 each replica has a StopReplica of its own, but from 0.10.2 to 1.0 a broker
    # has one for all replicas that keep their log.
    if not rules.stop_replica_batched:
        first, grouped = rules.empty_stop_replica, rules.plain_stop_replica_batched
        return split_stop_replica_by_replica(requests, common_first=first, grouped=grouped)
    # In 0.8.0, and from 2.3 to 2.5, a broker has one StopReplica for the replicas that are deleted
    # and one for the others.
    return (
        (requests,) if rules.stop_replica_by_partition else split_stop_replica_by_delete(requests)
    )


def split_stop_replica_by_delete(requests: Requests) -> Iterator[Requests]:
    """Yield `requests` without the StopReplica entries that keep the log, then these entries alone.

    If all StopReplica entries delete the log, or all keep it, yield `requests` unchanged.
    """
    # Protocols before 2.6 have one flag for deletion in each request, not in each entry (KIP-570).
    kinds: list[StopReplicas] = [{}, {}]  # those that delete, those that only stop
    for broker, stopped in requests.stop_replica.items():
        for tp, entry in stopped.items():
            kinds[not entry.delete].setdefault(broker, {})[tp] = entry
    first, *others = [kind for kind in kinds if kind] or [{}]
    yield replace(requests, stop_replica=first)
    for kind in others:
        yield _stop_replica_alone(requests, kind)


def _stop_replica_alone(requests: Requests, stop_replica: StopReplicas) -> Requests:
    nothing: dict[str, Any] = {"leader_and_isr": {}, "update_metadata": {}}
    return replace(requests, **nothing, update_metadata_to=(), stop_replica=stop_replica)


def split_stop_replica_by_replica(
    requests: Requests, *, common_first: bool, grouped: bool
) -> Iterator[Requests]:
    """Yield `requests` without StopReplica, then one StopReplica for each replica.

    With `common_first` each broker first gets one StopReplica without replicas. With `grouped` too,
    this request has all replicas that keep their log, and they get no StopReplica of their own.

    Source: ControllerBrokerRequestBatch.sendRequestsToBrokers (0.8.1, 0.10.2, 1.1).
    """
    yield replace(requests, stop_replica={})
    for broker, stopped in requests.stop_replica.items():
        common = {tp: entry for tp, entry in stopped.items() if grouped and not entry.delete}
        if common_first:
            yield _stop_replica_alone(requests, {broker: common})
        for tp in [tp for tp in stopped if tp not in common]:
            yield _stop_replica_alone(requests, {broker: {tp: stopped[tp]}})
