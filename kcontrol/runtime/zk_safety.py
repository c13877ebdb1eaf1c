"""Somebody else's ZooKeeper, as `--zookeeper host:port[/chroot]` names it: where we may write on it and where we may not.

We write only below a root that bears our marker, a znode `/.kcontrol` that says which tool, version and seed it was made by. A
new root gets the marker in the same transaction as itself. An empty root is taken; one that holds anything without our marker is
refused, and then nothing at all is written. Where no chroot was chosen, a Kafka cluster at the top of that ZooKeeper is refused
too: whoever wants to work beside it says so by naming a chroot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import NamedTuple, Protocol

from kcontrol.effects import Op, Znode
from kcontrol.errors import UserError
from kcontrol.runtime.zk_kazoo import KazooSession, KazooZooKeeper
from kcontrol.runtime.zk_rules import is_legal
from kcontrol.runtime.zookeeper import MARKER

TOOL = "kcontrol"
LEGAL_FORM = "host:port[,host:port...][/chroot]"
LARGEST_PORT = 65_535

_HOST_AND_PORT = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")


class Reader(Protocol):
    """Whoever can read a znode: a session, or an observer."""

    def read(self, paths: Sequence[str], watch: bool) -> list[Znode | None]: ...


class Address(NamedTuple):
    """Where a ZooKeeper is: `hosts` as given, and the chroot, "/" for the root itself, None where none was given."""

    hosts: str
    chroot: str | None


def parse_address(text: str) -> Address:
    """Read `host:port[,host:port...][/chroot]`. Raises `UserError` with the legal form for anything else."""
    hosts, slash, rest = text.partition("/")
    chroot = slash + rest
    for host in hosts.split(","):
        match = _HOST_AND_PORT.fullmatch(host)
        if match is None or not 0 < int(match[1]) <= LARGEST_PORT:
            raise _illegal(text)
    if chroot and not is_legal(chroot):
        raise _illegal(text)
    return Address(hosts, chroot or None)


def open_zookeeper(address: str, seed: int) -> KazooZooKeeper:
    """Open a ZooKeeper that is not our own, under the rules above. Without a chroot the root is `/kcontrol-<seed>`.

    Raises:
        UserError: the address has another form, nothing answers there, the rights do not suffice, or what is there is not ours.
    """
    hosts, chroot = parse_address(address)
    with KazooZooKeeper(hosts) as ensemble:
        client = ensemble.connect()
        own_choice = f"/{TOOL}-{seed}"
        if chroot is None:
            _require_no_foreign_cluster(client, hosts, "/", own_choice)
        _claim(client, hosts, own_choice if chroot is None else chroot, seed)
    return KazooZooKeeper(hosts, own_choice if chroot is None else chroot)


def _claim(client: KazooSession, hosts: str, root: str, seed: int) -> None:
    """Make sure that the root bears our marker, or raise `UserError` with nothing written."""
    if root == "/zookeeper" or root.startswith("/zookeeper/"):
        raise UserError(f"The chroot {root} is ZooKeeper's own part of {hosts}: choose another chroot.")
    if is_ours(client, root):
        return
    _require_no_foreign_cluster(client, hosts, root, f"/{TOOL}-{seed}")
    names = client.children([root], watch=False)[0]
    if names is not None and set(names) - {"zookeeper"}:
        raise UserError(
            f"The root {root} of ZooKeeper {hosts} holds data that is not {TOOL}'s: choose a chroot that is empty or new."
        )
    marker = json.dumps({"tool": TOOL, "version": version(TOOL), "seed": seed})
    steps = [root[: slash.start()] for slash in re.finditer("/", root) if slash.start()] + [root]
    missing = [path for path, stat in zip(steps, client.exists(steps, watch=False), strict=True) if stat is None]
    ops = [*(Op("create", path) for path in missing), Op("create", _below(root, MARKER), marker.encode())]
    error = client.write([tuple(ops)])[0].error
    if error is not None and not is_ours(client, root):
        raise UserError(
            f"The root {root} of ZooKeeper {hosts} cannot be marked as ours ({error}): choose a chroot with full rights."
        )


def is_ours(client: Reader, root: str) -> bool:
    """Tell whether a root bears our marker."""
    marker = client.read([_below(root, MARKER)], watch=False)[0]
    if marker is None:
        return False
    try:
        content = json.loads(marker.data)
    except ValueError:
        return False
    return isinstance(content, dict) and content.get("tool") == TOOL


def _require_no_foreign_cluster(client: KazooSession, hosts: str, root: str, suggestion: str) -> None:
    """Raise `UserError` if a root without our marker holds what a Kafka cluster keeps in ZooKeeper."""
    if is_ours(client, root):
        return
    paths = [_below(root, path) for path in ("/controller", "/brokers/ids")]
    found = [path for path, stat in zip(paths, client.exists(paths, watch=False), strict=True) if stat]
    if found:
        raise UserError(
            f"ZooKeeper {hosts} holds a Kafka cluster that is not {TOOL}'s ({' and '.join(found)}), so nothing was written: "
            f"choose another chroot, for example {hosts}{suggestion}."
        )


def _below(root: str, path: str) -> str:
    return root.rstrip("/") + path


def _illegal(text: str) -> UserError:
    return UserError(f"{text!r} is no address of a ZooKeeper: write {LEGAL_FORM}, for example localhost:2181/my-chroot.")
