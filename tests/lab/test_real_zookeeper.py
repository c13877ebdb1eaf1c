"""A lab on a real ZooKeeper shows what one in the simulated world shows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pandas as pd
import psutil
import pytest

from kcontrol import Lab
from kcontrol.core.effects import Op
from kcontrol.core.errors import UserError
from kcontrol.zookeeper.kazoo import KazooZooKeeper
from kcontrol.zookeeper.kazoo.read import read_znode
from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper
from tests.notebooks.sanitizing import sanitized

pytestmark = pytest.mark.zookeeper

TABLES = ("partitions", "brokers", "znodes", "requests", "journal")
INCIDENTAL = ["run", "at", "at_ms", "time_ms", "time_utc", "broker_epoch"]


def story(lab: Lab) -> Lab:
    """A topic, the controller's death, its return, a follower that lags, and a session that ends under a living broker."""
    lab.create_topic("t", [[2, 3], [1, 2, 3]]).run().kill(1).run().start(1).run()
    return lab.shrink_isr("t-1", 3).run().expire_session(2).run()


def essence(found: pd.DataFrame) -> pd.DataFrame:
    """A table without times, zxids and sessions, and without the record that names the world."""
    kept = found.drop(columns=[name for name in INCIDENTAL if name in found]).drop(index="-1.0.1", errors="ignore")
    return kept.map(lambda value: sanitized(value) if isinstance(value, str) else value)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Lab]]:
    """The same story in both worlds."""
    folder = tmp_path_factory.mktemp("runs")
    with Lab(runs=folder) as simulated, Lab(world="zookeeper", runs=folder) as real:
        yield story(simulated), story(real)


@pytest.mark.parametrize("name", TABLES)
def test_equal_tables(both: tuple[Lab, Lab], name: str) -> None:
    """Every table is the same in both worlds, but for times, zxids and session ids."""
    one, other = (essence(getattr(lab if hasattr(lab, name) else lab.tables, name)()) for lab in both)
    pd.testing.assert_frame_equal(one, other)
    assert len(one) > 1


def test_the_same_record_by_record(both: tuple[Lab, Lab]) -> None:
    """The comparison finds no difference, in both directions."""
    one, other = both
    assert one.compare(other).table.empty and other.compare(one).table.empty
    assert len(one.records) > 700


def test_what_is_shown_is_what_the_server_has(both: tuple[Lab, Lab]) -> None:
    """The tables come from the journal; a client of its own finds the same at the server that the lab names."""
    _, real = both
    assert real.zk.address is not None
    for path in ("/controller", "/brokers/topics/t/partitions/1/state"):
        found = read_znode(real.zk.address, path)
        row = real.tables.znodes().loc[path]
        assert (found.data.decode(), found.stat.version) == (row.text, row.version)


def test_a_branch_goes_on_in_the_simulated_world(both: tuple[Lab, Lab], capsys: pytest.CaptureFixture[str]) -> None:
    """A branch of a real run has the same past by its steps, says where it goes on, and leaves the real one alone."""
    simulated, real = both
    before = len(real.records)
    branch = real.branch("what if")
    assert "simulated world" in capsys.readouterr().out
    assert "simulated world" in repr(branch) and branch.compare(simulated).table.empty
    earlier = real.branch("earlier", at="2.1.60")
    assert str(earlier.records[-1].id).startswith("2.1.6") or earlier.rewind("2.1.60")
    assert branch.kill(3).run().brokers().alive.to_dict() == {1: True, 2: True, 3: False}
    assert len(real.records) == before


def test_rewinding_reads_the_journal_again(both: tuple[Lab, Lab]) -> None:
    """A moment of the real run is that of the simulated one."""
    one, other = (lab.rewind("2.1.60") for lab in both)
    pd.testing.assert_frame_equal(essence(one.partitions()), essence(other.partitions()))
    assert one.brokers().alive.equals(other.brokers().alive)


def test_get_prints_what_zookeepers_shell_prints(both: tuple[Lab, Lab]) -> None:
    """A znode and its eleven stat lines have the same form and the same counts in both worlds."""
    lines = [repr(lab.zk.get("/controller_epoch")).splitlines() for lab in both]
    assert [line.split(" = ")[0] for line in lines[0]] == [line.split(" = ")[0] for line in lines[1]]
    assert lines[0][0] == "3" and len(lines[0]) == 12
    counts = ("cversion", "dataVersion", "aclVersion", "ephemeralOwner", "dataLength", "numChildren")
    assert [line for line in lines[0] if line.startswith(counts)] == [line for line in lines[1] if line.startswith(counts)]


def test_labs_share_one_server_and_nothing_else(opened: Callable[..., Lab]) -> None:
    """A second lab of this process has the same server and another root; with the last one the server ends."""
    first, second = opened(1, world="zookeeper"), opened(1, world="zookeeper", topics={"t": [[1]]})
    one, other = ((lab.zk.address or "").split("/", 1) for lab in (first, second))
    assert one[0] == other[0] and one[1] != other[1]
    assert first.partitions().empty and not second.partitions().empty
    first.close()
    assert second.create_topic("u", [[1]]).run().partitions().leader["u-0"] == 1


def test_everything_ends_with_the_lab(folder: object) -> None:
    """When the last lab is closed, no process of its server is left, and neither is a thread of its clients."""
    processes = {process.pid for process in psutil.Process().children(recursive=True)}
    threads = set(threading.enumerate())
    with Lab(1, world="zookeeper") as lab:
        assert lab.zk.address
    left = {p.pid for p in psutil.Process().children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE} - processes
    assert not left
    assert not {thread for thread in threading.enumerate() if thread.is_alive()} - threads


@pytest.mark.slow
def test_another_zookeeper(opened: Callable[..., Lab]) -> None:
    """On a ZooKeeper that the lab did not start, everything lies below the marked root of its seed, or below the chroot named."""
    with EmbeddedZooKeeper() as server:
        lab = opened(2, seed=5, zookeeper=server.hosts)
        assert lab._world.kind == "zookeeper" and lab.zk.address == f"{server.hosts}/kcontrol-5"
        assert read_znode(server.hosts, "/kcontrol-5/controller_epoch").data == b"1"
        named = opened(2, seed=5, zookeeper=f"{server.hosts}/my/own")
        assert read_znode(f"{server.hosts}/my/own", "/controller_epoch").data == b"1"
        named.close()
        lab.close()


@pytest.mark.slow
def test_a_lab_deletes_nothing_that_another_client_created(opened: Callable[..., Lab]) -> None:
    """A root where an earlier lab and another client have created znodes is refused, and every znode is still there."""
    with EmbeddedZooKeeper() as server:
        opened(1, zookeeper=f"{server.hosts}/mine").close()
        with KazooZooKeeper(server.hosts, "/mine") as other:
            other.connect().write([(Op("create", path, b"theirs"),) for path in ("/prod", "/prod/data", "/brokers/topics/t")])
            before = other.tree()
            with pytest.raises(UserError, match=r"^'/mine/brokers/topics/t' and 2 more were not created by kcontrol, so nothing"):
                opened(1, zookeeper=f"{server.hosts}/mine")
            assert other.tree() == before


@pytest.mark.slow
def test_a_lab_starts_anew_where_an_earlier_one_was(opened: Callable[..., Lab]) -> None:
    """A second lab on the root of an earlier one deletes the earlier topics, and `/` and the root of an open lab are refused."""
    with EmbeddedZooKeeper() as server:
        opened(1, zookeeper=server.hosts, topics={"t": [[1]]}).close()
        second = opened(1, zookeeper=server.hosts)
        assert second.partitions().empty
        with pytest.raises(UserError, match=r"^Another lab uses ZooKeeper .*, for example 127\.0\.0\.1:\d+/kcontrol-7-2\.$"):
            opened(1, zookeeper=server.hosts)
        with pytest.raises(UserError, match=r"^The root / of ZooKeeper "):
            opened(1, zookeeper=f"{server.hosts}/")


def test_the_root_of_an_open_lab_is_refused_with_another_chroot_as_the_example(opened: Callable[..., Lab]) -> None:
    """The address of a lab on a server of its own is refused as another lab's, and the example is a chroot that is free."""
    first = opened(1, world="zookeeper")
    with pytest.raises(UserError, match=r"^Another lab uses ZooKeeper (\S+)/kcontrol-7\S*, .*, for example \1/kcontrol-7-\d+\.$"):
        opened(1, zookeeper=first.zk.address)
