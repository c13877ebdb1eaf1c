"""A lab on a real ZooKeeper goes on after a pause in which ZooKeeper has ended its sessions."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.journal.fold import fold
from kcontrol.journal.journal import Record, why
from kcontrol.lab import open_world
from kcontrol.search import invariants
from kcontrol.zookeeper.kazoo import KazooSession
from kcontrol.zookeeper.kazoo.wire import close_session
from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper
from tests.core.snapshots import without_defaults
from tests.zookeeper.support import Wire

pytestmark = [pytest.mark.zookeeper, pytest.mark.slow]

TOPICS = {"t": [[2, 3], [1, 2, 3]]}
PATIENCE_S = 30


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedZooKeeper]:
    with EmbeddedZooKeeper() as embedded:
        yield embedded


@pytest.fixture
def wire(server: EmbeddedZooKeeper) -> Iterator[Wire]:
    """A wire to that server that can be cut."""
    wire = Wire(server.port)
    yield wire
    wire.close()


def sessions(lab: Lab) -> list[KazooSession]:
    zookeeper = lab._world.zk
    return [*zookeeper._sessions.values(), zookeeper._own_session]  # type: ignore[attr-defined]


def cut_off(lab: Lab, wire: Wire) -> None:
    """Cut the lab off, and let each session find that out."""
    noticed = []
    for session in sessions(lab):
        noticed.append(threading.Event())
        session._kazoo.add_listener(lambda _state, seen=noticed[-1]: seen.set())
    wire.down()
    assert all(seen.wait(PATIENCE_S) for seen in noticed)


def pause(lab: Lab, wire: Wire, server: EmbeddedZooKeeper, ended: list[KazooSession] | None = None) -> None:
    """Cut the lab off, end these sessions of the lab at the server, all if none are named, and let the lab find that out."""
    ended = sessions(lab) if ended is None else ended
    wire.down()
    for session in ended:
        assert close_session([("127.0.0.1", server.port)], PATIENCE_S, session.session_id, session._password)
    wire.up()
    for session in ended:
        assert session._kazoo._connection.connection_stopped.wait(PATIENCE_S)


def of_kind(lab: Lab, kind: str, start: int = 0) -> list[Record]:
    return [record for record in lab.records[start:] if record.kind == kind]


def require_truth(lab: Lab) -> None:
    """Check that the cluster keeps all promises at rest, and that the journal has what ZooKeeper and the brokers have."""
    assert invariants.violation(lab._world, invariants.AT_REST) is None
    assert without_defaults(fold(lab.records)) == without_defaults(lab._world.snapshot())


@pytest.mark.parametrize("release", ["0.8.1", "3.9"])
def test_an_act_after_the_pause(opened: Callable[..., Lab], server: EmbeddedZooKeeper, wire: Wire, release: str) -> None:
    """After a pause that has ended every session, a topic is created and led, every broker is registered, one is controller."""
    lab = opened(3, release, zookeeper=f"{wire.hosts}/act-{release}", topics=TOPICS)
    pause(lab, wire, server)
    assert lab.create_topic("v", [[1, 2]]).run().partitions().leader["v-0"] in (1, 2)
    brokers = lab.brokers()
    assert brokers.alive.all() and brokers.controller.sum() == 1
    require_truth(lab)


@pytest.mark.parametrize("release", ["1.0", "2.8"])
def test_a_pause_in_the_middle_of_a_handler(
    opened: Callable[..., Lab], server: EmbeddedZooKeeper, wire: Wire, release: str
) -> None:
    """A handler that was suspended when its session ended goes on or ends as its release has it, and the cluster rests."""
    lab = opened(3, release, zookeeper=f"{wire.hosts}/busy-{release}", topics=TOPICS).create_topic("v", [[1, 2], [2, 3]])
    lab.run(until=lambda lab: any(not p.driver.is_quiet for p in lab._world.processes.values()))
    pause(lab, wire, server)
    assert set(lab.run().partitions().leader) <= {1, 2, 3}
    require_truth(lab)


def test_running_after_the_pause(opened: Callable[..., Lab], server: EmbeddedZooKeeper, wire: Wire) -> None:
    """`run` alone journals the end of every session with the znodes that went with it, and each broker's new session."""
    lab = opened(3, zookeeper=f"{wire.hosts}/run", topics=TOPICS)
    owned = {path: owner for path, (_, _, owner) in lab.state["znodes"].items() if owner is not None}
    before = len(lab.records)
    pause(lab, wire, server)
    lab.run()
    closes = of_kind(lab, "close", before)
    assert {path: r.fields["broker"] for r in closes for path in r.fields["deleted"]} == owned
    assert len(owned) == 4
    chains = [[cause.kind for cause in why(lab.records, r.id)] for r in (*closes, *of_kind(lab, "open", before))]
    assert chains == [["close", "session_lost"]] * 3 + [["open", "renew", "session_lost"]] * 3
    require_truth(lab)


def test_the_tools_open_another_session(opened: Callable[..., Lab], server: EmbeddedZooKeeper, wire: Wire) -> None:
    """The journal has one record of the session that the tools open after the pause, before the tools' next act."""
    lab = opened(1, zookeeper=f"{wire.hosts}/tools", topics={"t": [[1]]})
    pause(lab, wire, server, [lab._world._tool])  # type: ignore[list-item]
    before = len(lab.records)
    lab.create_topic("v", [[1]])
    assert [r.kind for r in lab.records[before:][:2]] == ["reopen", "act"]
    assert lab.records[before].fields["session"] == lab._world._tool.session_id
    lab.run()
    assert len(of_kind(lab, "reopen")) == 1 and not of_kind(lab, "session_lost")


def test_the_end_of_a_dead_brokers_session(opened: Callable[..., Lab], server: EmbeddedZooKeeper, wire: Wire) -> None:
    """A session that a killed broker has left behind, and that ended in the pause, has the broker's end as cause."""
    lab = opened(2, zookeeper=f"{wire.hosts}/dead", topics={"t": [[2, 1]]}).kill(2)
    pause(lab, wire, server, [ghost.client for ghost in lab._world.orphaned_sessions[2]])  # type: ignore[misc]
    assert lab.run().partitions().leader["t-0"] == 1
    (close,) = of_kind(lab, "close")
    assert close.fields["deleted"] == ["/brokers/ids/2"]
    assert [r.kind for r in why(lab.records, close.id)] == ["close", "stop"]
    require_truth(lab)


def test_a_run_with_a_pause_can_be_played_again(
    opened: Callable[..., Lab], server: EmbeddedZooKeeper, wire: Wire, capsys: pytest.CaptureFixture[str]
) -> None:
    """A branch of a run with a pause has the records of that run, in the simulated world."""
    lab = opened(3, zookeeper=f"{wire.hosts}/again", topics=TOPICS)
    pause(lab, wire, server)
    lab.create_topic("v", [[1, 2]]).run()
    branch = lab.branch("again")
    assert [str(record.id) for record in branch.records] == [str(record.id) for record in lab.records]
    assert branch.compare(lab).table.empty


def test_an_act_while_zookeeper_is_away(opened: Callable[..., Lab], wire: Wire) -> None:
    """An act while ZooKeeper does not answer is refused with what to do, changes nothing, and is possible once it answers."""
    lab = opened(1, zookeeper=f"{wire.hosts}/away", topics={"t": [[1]]})
    for session in sessions(lab):
        session._patience_s = 0.2
    before = len(lab.records)
    cut_off(lab, wire)
    for act in (lab.run, lambda: lab.create_topic("v", [[1]]), lambda: lab.zk.get("/controller")):
        with pytest.raises(UserError, match=r"^ZooKeeper does not respond: try again when it runs, or close this lab"):
            act()
    assert len(lab.records) == before
    wire.up()
    for session in sessions(lab):
        session._patience_s = PATIENCE_S
    assert lab.create_topic("v", [[1]]).run().partitions().leader["v-0"] == 1


@pytest.mark.parametrize("jump_ms", [24 * 3_600_000, -3_600_000])
def test_a_jump_of_the_wall_clock(
    opened: Callable[..., Lab], server: EmbeddedZooKeeper, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, jump_ms: int
) -> None:
    """A wall clock that jumps a day forward or an hour back ends no session and fires no timer; the journal has its times."""
    # Only the clock that the lab reads is replaced: kazoo and ZooKeeper measure sessions by monotonic clocks.
    shift_ns = [0]
    monkeypatch.setattr(open_world, "time", SimpleNamespace(time_ns=lambda: time.time_ns() + shift_ns[0]))
    lab = opened(3, zookeeper=f"{server.hosts}/jump-{abs(jump_ms)}", topics=TOPICS)
    before = lab.create_topic("v", [[1, 2]]).records[-1]
    shift_ns[0] = jump_ms * 1_000_000
    lab.run().kill(2).run()
    assert lab.partitions().leader.to_dict() == {"t-0": 3, "t-1": 1, "v-0": 1}
    after = lab.records[lab.records.index(before) + 1 :]
    assert not {"session_lost", "reopen", "fire_timer"} & {record.kind for record in after}
    assert {round((record.at_ms - before.at_ms) / jump_ms) for record in after} == {1}
    require_truth(lab)
    assert lab.tables.watch_events(1).took_ms.notna().any() and not lab.tables.metrics().empty
    lab.save(tmp_path / "jump.jsonl")
    assert len(Lab.open(tmp_path / "jump.jsonl").records) == len(lab.records)


def test_a_server_that_stood_still(opened: Callable[..., Lab]) -> None:
    """After its server has stood still for longer than every session's timeout, a lab creates a topic, which gets a leader."""
    with EmbeddedZooKeeper(longest_session_ms=4_000) as server:
        lab = opened(3, zookeeper=f"{server.hosts}/still", topics=TOPICS)
        os.kill(server.pid, signal.SIGSTOP)
        time.sleep(8)  # the pause itself: there is no event to wait for while the server stands still
        os.kill(server.pid, signal.SIGCONT)
        assert lab.create_topic("v", [[1, 2]]).run().partitions().leader["v-0"] in (1, 2)
        assert lab.brokers().controller.sum() == 1
        require_truth(lab)
