"""Traces on a real ZooKeeper: the same journal lines, the same moves, and the same tree as in memory."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.core.releases import PLAYABLE_RELEASES
from kcontrol.journal.journal import to_json
from kcontrol.zookeeper.kazoo import KazooZooKeeper
from kcontrol.zookeeper.memory import MemoryClient
from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper
from tests.tiers import DESIGNS, slow_but
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
PLAYED = (*DESIGNS, "0.8.0", "1.1", "2.4")
"""The releases that play every scenario on the real server; the requests of the other releases are among theirs."""
CHOSEN, OTHERS = (
    [f"{scenario}-{release}" for scenario in SCENARIOS for release in releases if release != "0.8.0" or scenario not in DELETIONS]
    for releases in (PLAYED, sorted({*PLAYABLE_RELEASES} - {*PLAYED}))
)
CHOSEN += OWN
# Each of these traces has requests to ZooKeeper that the others do not have, and each design of the controller is among them.
FAST = (
    "controller-killed-0.8.2", "controlled-shutdown-1.0", "zombie-controller-2.8", "reassign-by-znode-0.8.2", "topic-deleted-1.0",
    "fenced-write-2.8", "group-clean-2.8",
)  # fmt: skip
AT_ONCE = 4
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


def play_on(server: EmbeddedZooKeeper, name: str) -> tuple[str, list[tuple[Any, ...]], dict[str, Any]]:
    """The lines, moves and znodes of a trace in a chroot of its own."""

    def stage(settings: Settings) -> World:
        return World(settings, zookeeper=real, clock=lambda: time.time_ns() // 1_000_000)

    with KazooZooKeeper(server.hosts, f"/trace-{next(CHROOTS)}") as real:
        played, world = play(read(name), stage)
        return played, moves(world), tree(world)


@pytest.fixture(scope="module")
def played(server: EmbeddedZooKeeper, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Any]]:
    """Returns what a trace had on the real server. Some traces are played at once: most of the time each waits for the server."""
    mine = (item for item in request.session.items if item.path == request.path and isinstance(item, pytest.Function))
    chosen = [item.callspec.params["name"] for item in mine if "played" in item.fixturenames]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = {name: pool.submit(play_on, server, name) for name in chosen}
        yield lambda name: found[name].result()
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", slow_but(CHOSEN, *FAST))
def test_as_in_memory(name: str, played: Callable[[str], Any]) -> None:
    """A trace has the same lines, moves and znodes on a real ZooKeeper as on the one in memory."""
    simulated, here = play(read(name))
    lines, there, znodes = played(name)
    assert lines.splitlines() == simulated.splitlines()
    assert there == moves(here)
    assert znodes == tree(here)
    assert moves(here) or "/controller" in tree(here)


def requests(name: str, monkeypatch: pytest.MonkeyPatch) -> set[Any]:
    """Each request to ZooKeeper of a trace, played in memory, without its data and without the session that sends it."""
    found = set[Any]()

    def noted(method: str) -> Callable[..., Any]:
        send = getattr(MemoryClient, method)

        def call(client: MemoryClient, of: Sequence[Any], *watch: bool, **named: bool) -> Any:
            plain = [tuple(op._replace(data=b"") for op in ops) for ops in of] if method == "write" else of
            found.add((method, *plain, *watch, *named.values()))
            return send(client, of, *watch, **named)

        return call

    with monkeypatch.context() as patch:
        for method in ("exists", "read", "children", "write"):
            patch.setattr(MemoryClient, method, noted(method))
        play(read(name))
    return found


@pytest.mark.slow
def test_other_releases_send_no_other_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request of a release that plays no scenario on the real server is one that a played trace sends."""
    played, others = (set[Any]().union(*(requests(name, monkeypatch) for name in names)) for names in (CHOSEN, OTHERS))
    assert len(others) > 100 and others <= played


def test_every_scenario_is_a_trace_of_every_release() -> None:
    """At least fifteen scenarios of each release are played on both or have only requests that are, and each one is a trace."""
    assert {*CHOSEN, *OTHERS} <= set(names())
    every = [*CHOSEN, *OTHERS]
    assert min(len([name for name in every if name.endswith(f"-{release}")]) for release in PLAYABLE_RELEASES) >= 15
