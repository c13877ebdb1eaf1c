"""The controller epoch up to 2.0: a new controller increments it after it has won the election.

Between the creation of `/controller` and the write of `/controller_epoch` another broker can win
too, so two brokers may act as controller.

Source: KafkaController.incrementControllerEpoch (0.8.1, 2.0) and ControllerEpochListener (0.8.1).
"""

# Since 2.1 one transaction writes both znodes (KAFKA-6082).
from kcontrol.controller.context import ControllerContext
from kcontrol.controller.controller_election import update_active_controller
from kcontrol.controller.design import on_controller_failover, on_controller_resignation
from kcontrol.core import effects
from kcontrol.core import znodes as zk

INITIAL_EPOCH = INITIAL_ZK_VERSION = 1


def create_controller_znode_and_increment_epoch(
    ctx: ControllerContext, timestamp_ms: int
) -> effects.Handler:
    """Create `/controller` with `timestamp_ms`, increment the epoch, then run the failover.

    If `/controller` exists, only read its id into the context. After a later error: resign, delete
    `/controller`, and raise the error again.

    Source: KafkaController.elect and triggerControllerMove, KafkaZkClient.checkedEphemeralCreate
    (1.1).
    """
    data = zk.encode_controller(ctx.broker_id, timestamp_ms)
    result: effects.TransactionResult = yield effects.Transaction(
        (effects.Op("create", zk.CONTROLLER, data, ephemeral=True),)
    )
    if not result.is_ok:
        yield from update_active_controller(ctx)
        return
    yield effects.UpdateContext("active_controller_id", ctx.broker_id)
    try:
        yield from read_controller_epoch(ctx, watch=False)
        yield from increment_controller_epoch(ctx)
        yield from on_controller_failover(ctx)
    except Exception:
        yield from on_controller_resignation(ctx)
        yield effects.UpdateContext("active_controller_id", -1)
        # `/controller` may name another broker by then.
        yield effects.fenced(effects.Op("delete", zk.CONTROLLER))
        raise


def increment_controller_epoch(ctx: ControllerContext) -> effects.Handler:
    """Write the next epoch to `/controller_epoch` if the znode has the version in the context.

    A missing znode is created. Raises ControllerMoved if another broker has created the znode first
    and, since 1.1, after a version conflict.

    Source: KafkaController.incrementControllerEpoch (0.8.1, 1.1).
    """
    mine = ctx.controller_epoch + 1
    data, version = zk.encode_controller_epoch(mine), ctx.controller_epoch_zk_version
    op = effects.Op("set", zk.CONTROLLER_EPOCH, data, version)
    result: effects.TransactionResult = yield effects.Transaction((op,))
    if result.is_ok:
        yield effects.UpdateContext("controller_epoch_zk_version", result.versions[0] or 0)
        yield effects.UpdateContext("controller_epoch", mine)
    elif result.code == "NoNode":
        created: effects.TransactionResult = yield effects.Transaction(
            (effects.Op("create", zk.CONTROLLER_EPOCH, zk.encode_controller_epoch(INITIAL_EPOCH)),)
        )
        if not created.is_ok:
            raise effects.ControllerMoved
        yield effects.UpdateContext("controller_epoch", INITIAL_EPOCH)
        # The new znode has version 0; the broker's own listener corrects the version afterwards.
        yield effects.UpdateContext("controller_epoch_zk_version", INITIAL_ZK_VERSION)
    # Up to 1.0 the broker continues with its old epoch.
    elif ctx.rules.controller_epoch_conflict == "ends the failover":
        raise effects.ControllerMoved


def read_controller_epoch(ctx: ControllerContext, *, watch: bool = True) -> effects.Handler:
    """Read `/controller_epoch` into the context; do nothing if the znode is missing.

    With `watch` the read sets a watch, even if the znode is missing.

    Source: KafkaController.readControllerEpochFromZookeeper (0.8.1); ControllerEpochListener
    (0.8.1), which every broker has, the controller too.
    """
    (stat,) = yield effects.Exists((zk.CONTROLLER_EPOCH,), watch)
    if stat is None:
        return
    (znode,) = yield effects.Read((zk.CONTROLLER_EPOCH,), watch)
    if znode is not None:
        yield effects.UpdateContext("controller_epoch", zk.decode_controller_epoch(znode.data))
        yield effects.UpdateContext("controller_epoch_zk_version", znode.stat.version)
