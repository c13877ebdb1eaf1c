"""A log directory fails: its replicas are gone, and the controller is told through ZooKeeper to ask which ones.

Source: ReplicaManager.handleLogDirFailure, KafkaZkClient.propagateLogDirEvent (2.8; since 1.0, KIP-112).
"""

from __future__ import annotations

from kcontrol.effects import Handler, Learn, Op, Transaction
from kcontrol.events import LogDirFailure
from kcontrol.replica.context import BrokerContext
from kcontrol.znodes import LOG_DIR_EVENT_NOTIFICATION, encode_log_dir_event


def log_dir_failure(ctx: BrokerContext, event: LogDirFailure) -> Handler:
    """Stop serving the replicas of the directory, and leave a numbered znode for the controller."""
    yield Learn("offline_partitions", event.partitions, context="broker")
    gone = tuple(tp for tp in event.partitions if tp in ctx.hosted)
    if gone:
        yield Learn("hosted", remove=gone, context="broker")
    path = f"{LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_"
    yield Transaction((Op("create", path, encode_log_dir_event(ctx.broker_id), sequential=True),))
