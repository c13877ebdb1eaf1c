"""The handler of BrokerChange from 0.11 to 2.1, releases without broker epochs.

Source: KafkaController.BrokerChange (0.11, 1.0), processBrokerChange (2.1).
"""

from kcontrol.controller.broker_changes import on_broker_failure, on_broker_startup
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.earlier.failover_steps import await_requests
from kcontrol.controller.failover_steps import read_brokers
from kcontrol.core.effects import Handler, UpdateContext
from kcontrol.core.events import BrokerChange


def broker_change(ctx: ControllerContext, event: BrokerChange) -> Handler:
    """Handle brokers whose registration is new, then the brokers that have died.

    The context gets all registrations before any other step. Without broker epochs the controller
    does not notice a restart between two reads.

    Source: KafkaController.processBrokerChange (2.1).
    """
    registered, epochs = yield from read_brokers(ctx)
    new = tuple(b for b in epochs if b not in ctx.live_broker_epochs)
    dead = tuple(b for b in sorted(ctx.live_broker_epochs) if b not in epochs)
    if new or dead or registered != ctx.live_brokers:
        yield UpdateContext("live_brokers", registered, clear=True)
        yield from await_requests(ctx, dead)
        yield UpdateContext("live_broker_epochs", epochs, clear=True)
    if new:
        yield from on_broker_startup(ctx, new)
    if dead:
        yield from on_broker_failure(ctx, dead)
