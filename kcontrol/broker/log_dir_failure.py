"""The failure of a log directory: its replicas stop, and a znode notifies the controller.

The controller then sends LeaderAndIsr to this broker, to find out which replicas are offline.

After the next start of the broker the directory has its former contents.

Source: ReplicaManager.handleLogDirFailure, KafkaZkClient.propagateLogDirEvent (2.8; since 1.0,
KIP-112).
"""

from kcontrol.broker.context import BrokerContext
from kcontrol.broker.events import LogDirFailure
from kcontrol.core.effects import Handler, Op, Transaction, UpdateContext
from kcontrol.core.znodes import LOG_DIR_EVENT_NOTIFICATION, encode_log_dir_event


def log_dir_failure(ctx: BrokerContext, event: LogDirFailure) -> Handler:
    """A znode below `/log_dir_event_notification` with the broker's id notifies the controller."""
    yield UpdateContext("offline_partitions", event.partitions, context="broker")
    gone = tuple(tp for tp in event.partitions if tp in ctx.hosted)
    if gone:
        yield UpdateContext("hosted", remove=gone, context="broker")
    path = f"{LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_"
    yield Transaction((Op("create", path, encode_log_dir_event(ctx.broker_id), sequential=True),))
