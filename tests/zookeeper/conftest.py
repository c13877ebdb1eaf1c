"""One real server for the whole run, and a fresh, empty ZooKeeper of either kind for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from kcontrol.zookeeper.kazoo import KazooZooKeeper
from kcontrol.zookeeper.memory import MemoryZooKeeper
from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper
from tests.zookeeper.support import Clock

_CHROOTS = itertools.count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedZooKeeper]:
    """A real ZooKeeper server that all tests share, each below a chroot of its own."""
    with EmbeddedZooKeeper() as embedded:
        yield embedded


@pytest.fixture
def chroot() -> str:
    """A path that no other test uses."""
    return f"/case-{next(_CHROOTS)}"


@pytest.fixture
def real(server: EmbeddedZooKeeper, chroot: str) -> Iterator[KazooZooKeeper]:
    with KazooZooKeeper(server.hosts, chroot) as zookeeper:
        yield zookeeper


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.zookeeper)])
def zookeeper(request: pytest.FixtureRequest) -> Any:
    """An empty ZooKeeper: once the one in memory, once a real one."""
    return MemoryZooKeeper(Clock()) if request.param == "memory" else request.getfixturevalue("real")


@pytest.fixture
def client(zookeeper: Any) -> Any:
    return zookeeper.connect()


@pytest.fixture
def other(zookeeper: Any) -> Any:
    return zookeeper.connect()
