"""The read of one znode of any ZooKeeper, for the command line. Nothing is written."""

from kcontrol.core.effects import SessionExpired, Znode
from kcontrol.core.errors import UserError
from kcontrol.zookeeper.kazoo import KazooZooKeeper
from kcontrol.zookeeper.kazoo.root_protection import parse_address
from kcontrol.zookeeper.port import ConnectionLoss
from kcontrol.zookeeper.transaction_rules import is_legal


def read_znode(address: str, path: str) -> Znode:
    """Return the data and the Stat of the znode `path` below `address`, such as `host:port/chroot`.

    Raises UserError if no server responds, or the znode is missing or may not be read.
    """
    hosts, chroot = parse_address(address)
    if not is_legal(path):
        raise UserError(f"{path!r} is not the path of a znode: begin with a slash and do not end with a slash.")
    root = (chroot or "").rstrip("/")
    full = root + path if path != "/" else root or "/"
    try:
        with KazooZooKeeper(hosts) as ensemble:
            znode = ensemble.connect().read([full], watch=False)[0]
    except (ConnectionLoss, SessionExpired) as problem:
        raise UserError(f"The ZooKeeper at {hosts} does not respond any more: try again.") from problem
    if znode is None:
        raise UserError(f"There is no znode {full} at {hosts}: check the path and the chroot.")
    return znode
