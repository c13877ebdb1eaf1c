"""Traces on a real ZooKeeper: the same journal lines, the same moves, and the same tree as in memory."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kcontrol.cluster.run_settings import PLAYABLE_RELEASES, Settings
from kcontrol.cluster.world import World
from kcontrol.journal.journal import to_json
from kcontrol.zookeeper.kazoo import KazooZooKeeper
from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper
from tests.traces.player import names, play, read

pytestmark = pytest.mark.zookeeper

SCENARIOS = (
    "start-321", "leader-killed", "controller-killed", "controlled-shutdown", "bounced-unseen", "session-expired",
    "zombie-controller", "isr-order", "isr-order-shutdown", "first-replica-dead", "cluster-restarted",
    "trigger-controller-deleted", "trigger-controller-changed", "unclean-allowed", "isr-shrink-and-expand",
    "preferred-by-znode", "reassign-by-znode", "last-isr-member", "back-too-early",
    "topic-deleted", "deletion-halted",
)  # fmt: skip
OWN = (
    "fenced-write-2.8", "elect-3-lost", "lost-race-2.8", "unfenced-write-0.8.1", "session-expired-twice-0.8.1",
    "reassign-cancelled-2.8", "untold-decision-2.8", "group-clean-0.9", "group-clean-2.8",
)  # fmt: skip
DELETIONS = ("topic-deleted", "deletion-halted")  # not in 0.8.0
CHOSEN = [
    *(
        f"{scenario}-{release}"
        for scenario in SCENARIOS
        for release in PLAYABLE_RELEASES
        if (release, scenario in DELETIONS) != ("0.8.0", True)
    ),
    *OWN,
]
TIMESTAMP = re.compile(r'"timestamp":"\d+"')
CHROOTS = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedZooKeeper]:
    """One real server for all of them."""
    with EmbeddedZooKeeper() as embedded:
        yield embedded


def tree(world: World) -> dict[str, Any]:
    """Every znode: its data but for timestamps, its version, and whose session owns it."""
    return {
        path: (TIMESTAMP.sub("", to_json(node.data)), node.stat.version, world.owners.get(node.stat.ephemeral_owner))
        for path, node in world.zk.tree().items()
    }


def moves(world: World) -> list[tuple[Any, ...]]:
    """Every move of both machines that any controller has made, or could not make, in order."""
    return [
        (r.id.node, r.kind, str(r.fields["subject"]), r.fields["source"], r.fields["target"], r.fields.get("leadership"))
        for r in world.journal.records
        if r.kind in ("change", "failed_change", "conflict")
    ]


@pytest.mark.parametrize("name", CHOSEN)
def test_as_in_memory(name: str, server: EmbeddedZooKeeper) -> None:
    """A trace has the same lines, moves and znodes on a real ZooKeeper as on the one in memory."""

    def stage(settings: Settings) -> World:
        return World(settings, zookeeper=real, clock=lambda: time.time_ns() // 1_000_000)

    with KazooZooKeeper(server.hosts, f"/trace-{next(CHROOTS)}") as real:
        simulated, here = play(read(name))
        played, there = play(read(name), stage)
        assert played.splitlines() == simulated.splitlines()
        assert moves(there) == moves(here)
        assert tree(there) == tree(here)
    assert moves(here) or "/controller" in tree(here)


def test_both_releases_are_there() -> None:
    """At least fifteen scenarios of each release are played on both, and every one of them is a trace."""
    assert set(CHOSEN) <= set(names())
    assert min(len([name for name in CHOSEN if name.endswith(f"-{release}")]) for release in PLAYABLE_RELEASES) >= 15
