"""The protection of a foreign ZooKeeper (`--zookeeper host:port/chroot`): the znodes that kcontrol writes and deletes.

The root is the chroot of the address, or `/kcontrol-<seed>` if it has no chroot. kcontrol writes only below a root with the
marker, a znode `/.kcontrol`. The marker has the tool, version and seed that made it, and the root's owner: a random name. A root
gets the marker if it is new, or has neither data nor children. Any other root without the marker is refused, `/` is always
refused, and then nothing is written. Without a chroot, a Kafka cluster at `/` is refused too, unless `/` has the marker.

The ACL of every znode that kcontrol creates below a root has an entry with the root's owner. So the ACL shows which znodes are
ours, even after a process was killed. Only these znodes are deleted, and only if there is no other znode below the root.

One lab at a time uses a root: its client holds the ephemeral znode `/.kcontrol/in-use`.
"""

import itertools
import json
import re
import secrets
from collections.abc import Sequence
from importlib.metadata import version
from typing import NamedTuple, Protocol

from kcontrol.core.effects import Op, Znode
from kcontrol.core.errors import UserError
from kcontrol.zookeeper.kazoo import KazooSession, KazooZooKeeper, RootInUse
from kcontrol.zookeeper.port import MARKER, OF_THE_SERVER
from kcontrol.zookeeper.transaction_rules import is_legal

TOOL = "kcontrol"
LEGAL_FORM = "host:port[,host:port...][/chroot]"
LARGEST_PORT = 65_535
LARGEST_TRANSACTION = 500  # deletions; even with the longest paths below the 1 MB that a server accepts
SERVER = "server"  # the owner in the marker at the top of a server that a lab has started

_HOST_AND_PORT = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")


class Reader(Protocol):
    """A client that can read znodes: a KazooSession, or an Observer, the client of a cluster that is only observed."""

    def read(self, paths: Sequence[str], watch: bool) -> list[Znode | None]: ...


class Address(NamedTuple):
    """The address of a ZooKeeper: `hosts` as given, and the chroot: "/" for `host:port/`, None for `host:port`."""

    hosts: str
    chroot: str | None


def parse_address(text: str) -> Address:
    """Parse `host:port[,host:port...][/chroot]`. Raises UserError with the legal form for anything else."""
    hosts, slash, rest = text.partition("/")
    chroot = slash + rest
    for host in hosts.split(","):
        match = _HOST_AND_PORT.fullmatch(host)
        if match is None or not 0 < int(match[1]) <= LARGEST_PORT:
            raise _illegal(text)
    if chroot and not is_legal(chroot):
        raise _illegal(text)
    return Address(hosts, chroot or None)


class _Root(NamedTuple):
    """The root below which a lab writes: its servers and its path, by default `/kcontrol-<seed>` with the lab's seed.

    `free` is a path that does not exist yet, which error texts propose.
    """

    hosts: str
    path: str
    free: str

    @property
    def advice(self) -> str:
        return f"choose another chroot, for example {self.hosts}{self.free}."


def open_zookeeper(address: str, seed: int) -> KazooZooKeeper:
    """Connect a lab to a running ZooKeeper; the lab writes only below the chroot in `address`, by default `/kcontrol-<seed>`.

    Raises UserError if ZooKeeper does not respond or refuses, or the chroot is in use or has other data.
    """
    hosts, chroot = parse_address(address)
    with KazooZooKeeper(hosts) as ensemble:
        client = ensemble.connect()
        root = _Root(hosts, f"/{TOOL}-{seed}" if chroot is None else chroot, _free_chroot(client, seed))
        if chroot is None:
            _require_no_foreign_cluster(client, root._replace(path="/"))
        owner = _claim(client, root, seed)
    try:
        return KazooZooKeeper(hosts, root.path, owner=owner)
    except RootInUse:
        raise UserError(_in_use(root)) from None


def mark_server(hosts: str, seed: int) -> None:
    """The marker says that a lab, with this seed, has started the server."""
    # A lab that finds a Kafka cluster on this server then says in its error text that another lab uses the server.
    with KazooZooKeeper(hosts) as ensemble:
        ensemble.connect().write([(Op("create", MARKER, _marker(seed, SERVER)),)])


def make_empty(ensemble: KazooZooKeeper, seed: int) -> None:
    """Delete the znodes that an earlier run has left below the chroot of `ensemble`.

    Raises UserError if another client has created or changed a znode there or still uses the chroot; the error proposes
    `/kcontrol-<seed>`.
    """
    znodes = ensemble.tree()
    foreign = [path for path, is_ours in zip(znodes, ensemble.are_ours(list(znodes)), strict=True) if not is_ours]
    if foreign:
        raise UserError(_not_created_by_us(_root_of(ensemble, seed), foreign))
    if any(znode.stat.ephemeral_owner for znode in znodes.values()):
        raise UserError(_in_use(_root_of(ensemble, seed)))
    client = ensemble.connect()
    # ZooKeeper has no condition on a czxid: a znode that was deleted and created again since the read, with an equal data
    # version, is deleted too.
    deletions = [Op("delete", path, expected_version=znodes[path].stat.version) for path in sorted(znodes, reverse=True)]
    for start in range(0, len(deletions), LARGEST_TRANSACTION):
        # The transactions before this one have been performed.
        if client.write([tuple(deletions[start : start + LARGEST_TRANSACTION])])[0].error:
            root = _root_of(ensemble, seed)
            raise UserError(f"Another client writes below {root.path} of ZooKeeper {root.hosts}: stop it, or {root.advice}")
    ensemble.end(client)


def _root_of(ensemble: KazooZooKeeper, seed: int) -> _Root:
    with KazooZooKeeper(ensemble.hosts) as whole:
        return _Root(ensemble.hosts, ensemble.chroot, _free_chroot(whole.connect(), seed))


def _not_created_by_us(root: _Root, foreign_paths: Sequence[str]) -> str:
    more = len(foreign_paths) - 1
    names = f"{root.path + foreign_paths[0]!r:.200}" + (f" and {more} more were" if more else " was")
    return (
        f"{names} not created by {TOOL}, so nothing was deleted on ZooKeeper {root.hosts}: "
        f"delete {'them' if more else 'it'} yourself, or {root.advice}"
    )


def _in_use(root: _Root) -> str:
    return (
        f"Another lab uses ZooKeeper {root.hosts}{root.path}, or its sessions have not expired yet: close it and wait for its "
        f"sessions to expire, or {root.advice}"
    )


def _free_chroot(client: Reader, seed: int) -> str:
    """The first of `/kcontrol-<seed>`, `/kcontrol-<seed>-2` ... that does not exist."""
    names = (f"/{TOOL}-{seed}" + (f"-{number}" if number > 1 else "") for number in itertools.count(1))
    return next(name for name in names if client.read([name], watch=False) == [None])


def _claim(client: KazooSession, root: _Root, seed: int) -> str:
    """Return the owner of a root: the random name in the root's marker, the znode `/.kcontrol`; create a missing marker.

    A new marker also has `seed`. Raises UserError for a forbidden root, such as `/`.
    """
    hosts, path, _ = root
    if path == "/" or path == OF_THE_SERVER or path.startswith(f"{OF_THE_SERVER}/"):
        whose = "holds the znodes of all clients" if path == "/" else "is ZooKeeper's own part"
        raise UserError(f"The root {path} of ZooKeeper {hosts} {whose}: {root.advice}")
    if owner := owner_of(client, path):
        return owner
    _require_no_foreign_cluster(client, root)
    (names,), (znode,) = client.children([path], watch=False), client.read([path], watch=False)
    if names or (znode and znode.data):
        raise UserError(f"The root {path} of ZooKeeper {hosts} holds data that is not {TOOL}'s: {root.advice}")
    steps = [path[: slash.start()] for slash in re.finditer("/", path) if slash.start()] + [path]
    missing = [step for step, stat in zip(steps, client.exists(steps, watch=False), strict=True) if stat is None]
    unchanged = [Op("check", path, expected_version=znode.stat.version)] if znode else []
    owner = secrets.token_hex(16)
    ops = [*unchanged, *(Op("create", step) for step in missing), Op("create", path + MARKER, _marker(seed, owner))]
    error = client.write([tuple(ops)])[0].error
    if error is None:
        return owner
    if found := owner_of(client, path):  # another lab has created the marker in the meantime
        return found
    raise UserError(f"The root {path} of ZooKeeper {hosts} cannot be marked as ours ({error}): choose a chroot with full rights.")


def _marker(seed: int, owner: str) -> bytes:
    return json.dumps({"tool": TOOL, "version": version(TOOL), "seed": seed, "owner": owner}).encode()


def is_ours(client: Reader, root: str) -> bool:
    """Whether the root has kcontrol's marker, the znode `/.kcontrol`."""
    return bool(owner_of(client, root))


def owner_of(client: Reader, root: str) -> str:
    """Return the owner, a name, in kcontrol's marker `/.kcontrol` below a root; "" if the root has no such marker."""
    marker = client.read([_below(root, MARKER)], watch=False)[0]
    try:
        content = json.loads(marker.data) if marker else None
    except ValueError:
        return ""
    return str(content.get("owner", "")) if isinstance(content, dict) and content.get("tool") == TOOL else ""


def _require_no_foreign_cluster(client: KazooSession, root: _Root) -> None:
    """Raise UserError if a root without kcontrol's marker `/.kcontrol` has a Kafka cluster: `/controller` or `/brokers/ids`."""
    if is_ours(client, root.path):
        return
    paths = [_below(root.path, path) for path in ("/controller", "/brokers/ids")]
    found = [path for path, stat in zip(paths, client.exists(paths, watch=False), strict=True) if stat]
    if found and root.path.startswith(f"/{TOOL}-") and owner_of(client, "/") == SERVER:
        raise UserError(_in_use(root))
    if found:
        raise UserError(
            f"ZooKeeper {root.hosts} holds a Kafka cluster that is not {TOOL}'s ({' and '.join(found)}), so nothing was written: "
            f"{root.advice}"
        )


def _below(root: str, path: str) -> str:
    return root.rstrip("/") + path


def _illegal(text: str) -> UserError:
    return UserError(f"{text!r} is not the address of a ZooKeeper: write {LEGAL_FORM}, for example localhost:2181/my-chroot.")
