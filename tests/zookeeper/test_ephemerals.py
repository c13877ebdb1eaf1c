"""The order in which the ephemeral znodes of an ended session go, which the others' watch events show."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.core.effects import Op
from kcontrol.zookeeper.kazoo import KazooZooKeeper
from kcontrol.zookeeper.memory import MemoryZooKeeper
from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper
from kcontrol.zookeeper.transaction_rules import Ephemerals
from tests.zookeeper.agree import java_release
from tests.zookeeper.support import Clock


def order_of_deletion(zookeeper: Any, names: list[str], gone: list[str]) -> list[str]:
    """Let one session create ephemerals of these names, delete some, and end; which order does another session see?"""
    owner, watcher = zookeeper.connect(), zookeeper.connect()
    paths = [f"/{name}" for name in names]
    parents = {path[: path.rfind("/")] for path in paths} - {""}
    watcher.write(
        [(Op("create", path[:end]),) for path in sorted(parents) for end in range(2, len(path) + 1) if (path + "/")[end] == "/"]
    )
    owner.write([(Op("create", path, ephemeral=True),) for path in paths])
    owner.write([(Op("delete", f"/{name}"),) for name in gone])
    watcher.exists(paths, watch=True)
    zookeeper.end(owner)
    zookeeper.settle()
    return [event.path for event in watcher.events()]


@pytest.mark.parametrize(("java", "order"), [
    (17, ["/c", "/d", "/e", "/f", "/g", "/h"]),
    (18, ["/c", "/d", "/e", "/f", "/g", "/h"]),
    (25, ["/g", "/h", "/c", "/d", "/e", "/f"]),
])  # fmt: skip
def test_the_order_depends_on_the_release_of_java(java: int, order: list[str]) -> None:
    """Six paths whose hashes are neighbours go in the order of their hashes up to Java 18, and modulo 8 from Java 19 on."""
    ephemerals = Ephemerals()
    for path in reversed(order):
        ephemerals.add(path)
    assert ephemerals.in_order_of_deletion("", java) == order


CASES = [
    (["controller", "brokers/ids/1"], []),
    (["controller", "brokers/ids/2"], []),
    (["controller", "brokers/ids/3"], []),
    (["controller", "brokers/ids/1001"], []),
    (["a", "b", "c"], []),
    ([f"n{number}" for number in range(6)], []),
    ([f"n{number}" for number in range(12)], []),
    ([f"long-name-{number}" for number in range(13)], []),
    ([f"x/{number}" for number in range(40)], []),
    ([f"x/{number}" for number in range(40)], [f"x/{number}" for number in range(3, 40)]),
    ([f"y{number}" for number in range(60)], [f"y{number}" for number in range(0, 60, 2)]),
    (["é", "\ud7ff", "zz"], []),
]


@pytest.mark.zookeeper
@pytest.mark.parametrize(("names", "gone"), CASES)
def test_memory_knows_the_order_of_the_server(server: EmbeddedZooKeeper, chroot: str, names: list[str], gone: list[str]) -> None:
    """Below a chroot the ephemerals of an ended session go in the same order in memory as on the server."""
    with KazooZooKeeper(server.hosts, chroot) as real:
        expected = order_of_deletion(real, names, gone)
    assert order_of_deletion(MemoryZooKeeper(Clock(), chroot, java_release()), names, gone) == expected
    assert len(expected) == len(names) - len(gone)


@pytest.mark.zookeeper
@pytest.mark.parametrize(("names", "first"), [
    (["brokers/ids/1", "controller"], "/controller"),
    (["controller", "brokers/ids/1"], "/controller"),
    (["brokers/ids/1001", "controller"], "/brokers/ids/1001"),
    (["controller", "brokers/ids/1001"], "/controller"),
])  # fmt: skip
def test_memory_knows_the_order_without_a_chroot(server: EmbeddedZooKeeper, names: list[str], first: str) -> None:
    """At the root, where Kafka's paths are what they are, a dead controller's two znodes go in the same order on both."""
    # Ids 1 and 1001 differ: `/brokers/ids/1001` shares its bucket with `/controller`, so that the older znode goes first.
    with KazooZooKeeper(server.hosts) as real:
        try:
            expected = order_of_deletion(real, names, [])
        finally:
            real.connect().write([(Op("delete", "/brokers/ids"), Op("delete", "/brokers"))])
    assert order_of_deletion(MemoryZooKeeper(Clock()), names, []) == expected
    assert expected[0] == first
