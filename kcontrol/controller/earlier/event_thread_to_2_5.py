"""The changes that 1.1 to 2.5 make to the page of the event thread (`../event_thread.py`).

| up to | |
|---|---|
| 2.0 | `/controller` alone decides an election; the epoch is incremented afterwards (KAFKA-6082) |
| 2.3 | a partition moves in twelve steps, and the context alone has the reassignments (KIP-455) |
| 2.5 | Scala 2.12 orders the brokers of a batch |

What this file does not say: differences inside a handler. Those are rules of `controller_rules.py`.

Source: KafkaController.scala (1.1, 2.0, 2.3); gradle.properties (2.5).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kcontrol.controller.design import Design, ReassignmentProtocol
from kcontrol.controller.earlier import reassignment_1_1_to_2_3 as steps
from kcontrol.controller.earlier.controller_epoch_increment import (
    create_controller_znode_and_increment_epoch,
)
from kcontrol.controller.earlier.scala_hash_order import order_of_hashes
from kcontrol.core.controller_rules import Rules

TWELVE_STEPS = ReassignmentProtocol(
    initialize=steps.initialize_reassignments,
    trigger_pending=steps.trigger_reassignments,
    on_request=steps.zk_partition_reassignment,
    on_isr_change=steps.partition_reassignment_isr_change,
    on_broker_startup=steps.resume_reassignments_on,
)


def changed(design: Design, rules: Rules) -> Design:
    """Return the design of the event thread with the changes of a release."""
    if not rules.elects_with_epoch:
        design = replace(design, elect=create_controller_znode_and_increment_epoch)
    if rules.broker_order == "hashed":
        design = replace(design, in_groups=order_of_hashes)
    return _moving_by(design, TWELVE_STEPS) if rules.reassignment == "twelve steps" else design


def _moving_by(design: Design, protocol: ReassignmentProtocol) -> Design:
    """Return the design with another protocol of reassignments in all its tables."""
    instead: dict[Any, Any] = dict(zip(design.reassignment, protocol, strict=True))
    rows = {
        event: row._replace(handler=instead.get(row.handler, row.handler))
        for event, row in design.handlers.items()
    }
    failover = tuple(instead.get(step, step) for step in design.failover)
    return replace(design, reassignment=protocol, handlers=rows, failover=failover)
