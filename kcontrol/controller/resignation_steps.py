"""What a broker does once it is not controller any more, step by step; `failover_and_resignation` says in which order.

Source: KafkaController.onControllerResignation (0.8.2, 1.0, 2.8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kcontrol.controller.context import ControllerContext
from kcontrol.effects import AwaitRequests, Cancel, Handler, Learn, Unwatch
from kcontrol.generations import LISTENERS
from kcontrol.znodes import broker_path, state_path, topic_path

Step = Callable[[ControllerContext], Handler]

FORGOTTEN_AT_RESIGNATION_1_0 = (
    "live_brokers", "live_broker_epochs", "shutting_down_broker_ids", "all_topics", "topic_ids",
    "assignments", "leadership", "partition_states", "replica_states", "topics_to_be_deleted",
    "partitions_being_reassigned", "topics_with_deletion_started", "topics_ineligible_for_deletion",
)  # fmt: skip
FORGOTTEN_AT_RESIGNATION = (*FORGOTTEN_AT_RESIGNATION_1_0, "offline_dirs")


def stop_listening(path: str, *, children: bool = False) -> Step:
    """A step that forgets the handler of a path; the watch at ZooKeeper stays until it fires."""

    def step(ctx: ControllerContext) -> Handler:
        yield Unwatch(path, children)

    return step


def stop_listening_to_each_broker(ctx: ControllerContext) -> Handler:
    for broker_id in sorted(ctx.live_brokers):
        yield Unwatch(broker_path(broker_id))


def stop_listening_to_each_topic(ctx: ControllerContext) -> Handler:
    for topic in sorted(ctx.all_topics):
        yield Unwatch(topic_path(topic))


def stop_listening_to_reassigned_partitions(ctx: ControllerContext) -> Handler:
    if not ctx.rules.alter_isr:
        for tp in sorted(ctx.partitions_being_reassigned):
            yield Unwatch(state_path(tp))


def stop_rebalancing(ctx: ControllerContext) -> Handler:
    yield Cancel("auto-leader-rebalance")


def await_requests(ctx: ControllerContext, brokers: Iterable[int]) -> Handler:
    """Wait before channels are closed, where a channel's thread ends only with the request that is out.

    Source: ControllerChannelManager.removeExistingBroker (0.10.2.2, 2.1.1).
    """
    known = tuple(broker for broker in brokers if broker in ctx.live_broker_epochs)
    if ctx.rules.awaits_requests and known:
        yield AwaitRequests(known)


def await_all_requests(ctx: ControllerContext) -> Handler:
    """Wait for the requests on all channels; where listeners share one lock, only a controller has channels."""
    if ctx.has_channels or ctx.rules.design != LISTENERS:
        yield from await_requests(ctx, sorted(ctx.live_broker_epochs))


def forget(*names: str) -> Step:
    """A step that empties these fields of the context."""

    def step(ctx: ControllerContext) -> Handler:
        for name in names:
            if getattr(ctx, name):
                yield Learn(name, clear=True)

    return step


def reset_epochs(ctx: ControllerContext) -> Handler:
    yield Learn("controller_epoch", 0)
    yield Learn("controller_epoch_zk_version", 0)
