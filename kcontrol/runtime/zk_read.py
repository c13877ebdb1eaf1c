"""One look at one znode of any ZooKeeper, for the command line. It writes nothing there."""

from kcontrol.effects import SessionExpired, Znode
from kcontrol.errors import UserError
from kcontrol.runtime.zk_kazoo import KazooZooKeeper
from kcontrol.runtime.zk_rules import is_legal
from kcontrol.runtime.zk_safety import parse_address
from kcontrol.runtime.zookeeper import ConnectionLoss


def read_znode(address: str, path: str) -> Znode:
    """Returns a znode's value and Stat; `path` is below the chroot that `address` may end in (`host:port/chroot`).

    Raises:
        UserError: no server answers, the path is none, there is no such znode, or it may not be read.
    """
    hosts, chroot = parse_address(address)
    if not is_legal(path):
        raise UserError(f"{path!r} is no path of a znode: it must begin with a slash and not end in one.")
    root = (chroot or "").rstrip("/")
    full = root + path if path != "/" else root or "/"
    try:
        with KazooZooKeeper(hosts) as ensemble:
            znode = ensemble.connect().read([full], watch=False)[0]
    except (ConnectionLoss, SessionExpired) as problem:
        raise UserError(f"The ZooKeeper at {hosts} stopped answering: try again.") from problem
    if znode is None:
        raise UserError(f"There is no znode {full} at {hosts}: check the path and the chroot.")
    return znode
