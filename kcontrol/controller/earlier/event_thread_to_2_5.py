"""The controllers of 1.1 to 2.5: their differences from the controller since 2.6.

| up to | |
|---|---|
| 2.0 | `/controller` alone decides an election; the epoch is incremented afterwards (KAFKA-6082) |
| 2.1 | there are no broker epochs; a resignation waits for responses up to 2.1.0 (KAFKA-7576) |
| 2.1 | UpdateMetadata without a named partition contains all partitions |
| 2.3 | a reassignment has twelve steps, without `adding_replicas` in the topic znode (KIP-455) |
| 2.4 | topics are deleted one after the other |
| 2.5 | the replica machine visits brokers in the order of Scala 2.12 (`scala_hash_order.py`) |
| 2.5 | StopReplica has one flag for deletion (KIP-570) |

`../event_thread.py` has the controller since 2.6. What this file does not say: differences inside a
handler. Those are rules of `controller_rules.py`.

Source: KafkaController.scala (1.1, 2.0, 2.3); gradle.properties (2.5).
"""

from dataclasses import replace
from typing import Any

from kcontrol.controller.design import Design, ReassignmentProtocol
from kcontrol.controller.earlier import reassignment_1_1_to_2_3 as steps
from kcontrol.controller.earlier.broker_changes_to_2_1 import broker_change
from kcontrol.controller.earlier.controller_epoch_increment import (
    create_controller_znode_and_increment_epoch,
)
from kcontrol.controller.earlier.failover_steps import await_all_requests
from kcontrol.controller.earlier.request_batch_to_2_5 import metadata_partitions, requests_to_send
from kcontrol.controller.earlier.scala_hash_order import order_of_hashes
from kcontrol.controller.earlier.topic_deletion_to_2_4 import resume_deletions_one_by_one
from kcontrol.core.controller_rules import Rules
from kcontrol.core.events import BrokerChange

TWELVE_STEPS = ReassignmentProtocol(
    initialize=steps.initialize_reassignments,
    trigger_pending=steps.trigger_reassignments,
    on_request=steps.zk_partition_reassignment,
    on_isr_change=steps.partition_reassignment_isr_change,
    on_broker_startup=steps.resume_reassignments_on,
)


def changed(design: Design, rules: Rules) -> Design:
    """Return a copy of `design`, the controller since 2.6, with the functions of another release.

    The release is that of `rules`, 1.1 or later.
    """
    changes: dict[str, Any] = {}
    if not rules.elects_with_epoch:
        changes["elect"] = create_controller_znode_and_increment_epoch
    if rules.awaits_in_flight_requests:
        *steps, clear_fields, reset_epochs = design.resignation
        changes["resignation"] = (*steps, await_all_requests, clear_fields, reset_epochs)
    if not rules.broker_epochs:
        row = design.handlers[BrokerChange]._replace(handler=broker_change)
        changes["handlers"] = {**design.handlers, BrokerChange: row}
    if rules.empty_metadata == "all partitions" or rules.deleting_topic_metadata == "every time":
        changes["metadata_partitions"] = metadata_partitions
    as_in_2_6 = rules.stop_replica_batched and rules.stop_replica_by_partition
    if not (as_in_2_6 and rules.sends_empty_metadata):
        changes["requests_to_send"] = requests_to_send
    if not rules.deletes_topics_together:
        changes["resume_deletions"] = resume_deletions_one_by_one
    if rules.broker_order == "hashed":
        changes["in_groups"] = order_of_hashes
    design = replace(design, **changes)
    return _moving_by(design, TWELVE_STEPS) if rules.reassignment == "twelve steps" else design


def _moving_by(design: Design, protocol: ReassignmentProtocol) -> Design:
    """Return `design` (a controller as tables) with `protocol` as its reassignment functions."""
    instead: dict[Any, Any] = dict(zip(design.reassignment, protocol, strict=True))
    rows = {
        event: row._replace(handler=instead.get(row.handler, row.handler))
        for event, row in design.handlers.items()
    }
    failover = tuple(instead.get(step, step) for step in design.failover)
    return replace(design, reassignment=protocol, handlers=rows, failover=failover)
