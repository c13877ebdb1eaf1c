"""The controller epoch, where it is a step of its own after the election, and every broker follows it.

Source: KafkaController.incrementControllerEpoch and ControllerEpochListener (0.8.1).
"""

from __future__ import annotations

from kcontrol.controller.context import ControllerContext
from kcontrol.effects import ControllerMoved, Exists, Handler, Learn, Op, Read, Result, Transaction
from kcontrol.znodes import CONTROLLER_EPOCH, decode_controller_epoch, encode_controller_epoch

INITIAL_EPOCH = INITIAL_ZK_VERSION = 1


def increment_controller_epoch(ctx: ControllerContext) -> Handler:
    """Write the next epoch over the version last seen; a lost race is only logged, and the broker goes on with the old epoch.

    From 1.1 on it raises ControllerMoved instead, as all do if another broker creates the znode first.
    """
    mine = ctx.controller_epoch + 1
    op = Op("set", CONTROLLER_EPOCH, encode_controller_epoch(mine), ctx.controller_epoch_zk_version)
    result: Result = yield Transaction((op,))
    if result.is_ok:
        yield Learn("controller_epoch_zk_version", result.versions[0] or 0)
        yield Learn("controller_epoch", mine)
    elif result.code == "NoNode":
        created: Result = yield Transaction((Op("create", CONTROLLER_EPOCH, encode_controller_epoch(INITIAL_EPOCH)),))
        if not created.is_ok:
            raise ControllerMoved
        yield Learn("controller_epoch", INITIAL_EPOCH)
        yield Learn("controller_epoch_zk_version", INITIAL_ZK_VERSION)  # the znode is at 0: its own listener corrects this
    elif ctx.rules.lost_epoch == "ends it":
        raise ControllerMoved


def read_controller_epoch(ctx: ControllerContext, *, watch: bool = True) -> Handler:
    """Take over what `/controller_epoch` says, if it is there: so does every broker, the controller too."""
    (stat,) = yield Exists((CONTROLLER_EPOCH,), watch)
    if stat is None:
        return
    (znode,) = yield Read((CONTROLLER_EPOCH,), watch)
    if znode is not None:
        yield Learn("controller_epoch", decode_controller_epoch(znode.data))
        yield Learn("controller_epoch_zk_version", znode.stat.version)
