"""A cluster that is looked at: what is shown is what ZooKeeper has, and nothing there changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pandas as pd
import pytest
from typer.testing import CliRunner

from kcontrol import Lab
from kcontrol.cli import app
from kcontrol.core.effects import Op
from kcontrol.core.errors import UserError
from kcontrol.journal.fold import Fold
from kcontrol.lab.observed_cluster import Observed, report
from kcontrol.zookeeper.kazoo import KazooZooKeeper
from kcontrol.zookeeper.kazoo.observe import ROOTS, Observer
from kcontrol.zookeeper.kazoo.root_protection import open_zookeeper
from kcontrol.zookeeper.memory import MemoryZooKeeper
from tests.lab.support import refusal
from tests.lab.test_zookeeper_costs import ACTS
from tests.zookeeper.test_root_protection import mzxids


def shown(moment: Lab | Observed) -> pd.DataFrame:
    """The znodes below ROOTS, with text, version and owner."""
    found = moment.tables.znodes()
    return found[[path.startswith(ROOTS) for path in found.index]]


def test_each_look_shows_what_is_there(opened: Callable[..., Lab]) -> None:
    """After every act of a long run the observer has the same znodes, versions and owners, and the same leaders, as the lab."""
    lab = opened([3, 2, 1])
    theirs = Lab.observe(lab)
    columns = ["leader", "isr", "replicas", "leader_epoch", "controller_epoch", "zk_version"]
    for act in ACTS:
        act(lab).run()
        pd.testing.assert_frame_equal(shown(theirs.look()), shown(lab))
        pd.testing.assert_frame_equal(theirs.partitions()[columns], lab.partitions()[columns])
        registered = lab.brokers().query("registered").index
        assert theirs.brokers().query("registered").index.tolist() == registered.tolist()
        assert theirs.brokers().query("controller").index.tolist() == lab.brokers().query("controller").index.tolist()
    assert Fold().all(theirs.records).state == theirs.state


def test_a_broker_that_was_bounced_between_two_looks(opened: Callable[..., Lab]) -> None:
    """Gone and back unseen, a broker has another session: the journal has the end of the old one and the start of the new."""
    lab = opened(2)
    theirs = Lab.observe(lab)
    lab.kill(2).run().start(2).run()
    seen = len(theirs.records)
    new = [(r.kind, r.fields["broker"]) for r in theirs.look().records[seen:] if r.kind in ("stop", "close", "start")]
    assert new == [("stop", 2), ("close", 2), ("start", 2)]
    assert theirs.brokers().alive.tolist() == [True, True]


def test_looking_changes_nothing(opened: Callable[..., Lab]) -> None:
    """Neither a znode nor a watch nor a zxid of the ZooKeeper in memory is another one after looking."""
    lab = opened(topics={"t": [[1, 2]]})
    zookeeper = lab._world.zk
    assert isinstance(zookeeper, MemoryZooKeeper)
    before = zookeeper.tree(), zookeeper.watches(), zookeeper.sessions(), zookeeper._zxid
    Lab.observe(lab).look().zk.get("/controller")
    assert (zookeeper.tree(), zookeeper.watches(), zookeeper.sessions(), zookeeper._zxid) == before


@pytest.mark.parametrize("name", ["kill", "start", "network", "disks", "create_topic", "step", "run", "actions"])
def test_an_observer_refuses_every_act(lab: Lab, name: str) -> None:
    """An act that would change the cluster is refused by name; a name that does not exist is an AttributeError."""
    theirs = Lab.observe(lab)
    with pytest.raises(UserError) as problem:
        getattr(theirs, name)
    assert name in refusal(problem) and "only read" in refusal(problem)
    with pytest.raises(AttributeError):
        theirs.no_such_thing  # noqa: B018


def test_writes_and_watches_are_refused_below_too() -> None:
    """The observer itself refuses writes and watches."""
    zookeeper = MemoryZooKeeper(lambda: 0)
    observer = Observer(zookeeper.connect())
    for refused in (
        lambda: observer.write([(Op("create", "/a"),)]),
        lambda: observer.read(["/a"], watch=True),
        lambda: observer.exists(["/a"], watch=True),
        lambda: observer.children(["/a"], watch=True),
    ):
        with pytest.raises(UserError) as problem:
            refused()
        assert "observed ZooKeeper" in refusal(problem)
    assert zookeeper.tree() == {} and zookeeper.watches() == []


def test_what_is_no_json_is_shown_as_it_is(lab: Lab) -> None:
    """A cluster with nonsense in its znodes is shown; a znode below `/brokers/ids` whose name is no number is no broker."""
    lab.zk.create("/brokers/ids/9", "nonsense").zk.create("/brokers/ids/x", "{}").zk.create("/brokers/topics/bad", "\x00[")
    theirs = Lab.observe(lab)
    assert theirs.tables.znodes().text["/brokers/ids/9"] == "nonsense" and 9 not in theirs.brokers().index
    assert list(theirs.partitions().index) == ["t-0", "t-1"]


def test_a_registration_without_a_session_is_in_the_summary(opened: Callable[..., Lab]) -> None:
    """A persistent /brokers/ids/7 is named above the listing that shows it, and is not counted as a living broker."""
    lab = opened(start=False).zk.create("/brokers").zk.create("/brokers/ids").zk.create("/brokers/ids/7", '{"version":5}')
    assert Lab.observe(lab).summary() == "0 brokers, broker 7 registered without a session, no controller, no partitions"


# ---------------------------------------------------------------- a real ZooKeeper of another owner


@pytest.fixture
def foreign(opened: Callable[..., Lab]) -> Iterator[tuple[KazooZooKeeper, str]]:
    """A server with a foreign cluster below /prod, which has a topic with markup in its name."""
    lab = opened(1, world="zookeeper")
    assert lab.zk.address is not None
    hosts = lab.zk.address.partition("/")[0]
    with KazooZooKeeper(hosts) as everything:
        broker = everything.connect()
        paths = [
            "/prod",
            "/prod/brokers",
            "/prod/brokers/ids",
            "/prod/brokers/topics",
            '/prod/brokers/topics/"><svg onload=x>\x1b',
        ]
        broker.write([(Op("create", path, b'{"version":1,"partitions":{"0":[7]}}'),) for path in paths])
        broker.write([(Op("create", "/prod/brokers/ids/7", b'{"version":5}', ephemeral=True),)])
        yield everything, f"{hosts}/prod"


@pytest.mark.zookeeper
def test_a_foreign_cluster_is_shown_and_not_touched(foreign: tuple[KazooZooKeeper, str]) -> None:
    """A lab refuses a foreign cluster, an observer shows it, and both leave the mzxid of every znode."""
    everything, address = foreign
    before = mzxids(everything)
    with pytest.raises(UserError, match="not kcontrol's"):
        open_zookeeper(address, seed=7)
    with Lab.observe(address) as theirs:
        assert theirs.brokers().index.tolist() == [7] and theirs.brokers().controller.tolist() == [False]
        assert "no controller" in repr(theirs)
        assert repr(theirs.zk.get("/brokers/ids/7")).splitlines()[0] == '{"version":5}'
        assert theirs.look().tables.znodes().owner["/brokers/ids/7"] == 7
        assert "<svg onload" not in str(theirs._repr_mimebundle_(include=["image/svg+xml"]))
    assert mzxids(everything) == before


@pytest.mark.zookeeper
def test_a_chroot_that_is_not_there_is_not_created(foreign: tuple[KazooZooKeeper, str]) -> None:
    """An observer of a missing chroot is refused in a sentence, and creates no znode."""
    everything, address = foreign
    before = mzxids(everything)
    with pytest.raises(UserError) as problem:
        Lab.observe(f"{address}/nowhere")
    assert "/prod/nowhere" in refusal(problem)
    assert mzxids(everything) == before


@pytest.mark.slow
@pytest.mark.zookeeper
def test_the_command_line(foreign: tuple[KazooZooKeeper, str], opened: Callable[..., Lab]) -> None:
    """`zk show` prints a lab's znodes, refuses a foreign cluster, and with --observe prints it, one escaped line per znode."""
    everything, address = foreign
    before = mzxids(everything)
    mine = opened(1, zookeeper=address.replace("/prod", "/mine"))
    ours = next(iter(report(str(mine.zk.address), any_cluster=False)))
    assert "broker 1 is controller" in ours
    refused = CliRunner().invoke(app, ["zk", "show", "--zookeeper", address])
    assert isinstance(refused.exception, UserError) and "--observe" in str(refused.exception)
    done = CliRunner().invoke(app, ["zk", "show", "--observe", "--zookeeper", address])
    assert done.exit_code == 0 and "\u2028" not in done.output
    assert '/brokers/ids/7  version 0  (ephemeral, broker 7)  {"version":5}' in done.output.splitlines()
    assert {path: zxid for path, zxid in mzxids(everything).items() if path.startswith("/prod")} == {
        path: zxid for path, zxid in before.items() if path.startswith("/prod")
    }


@pytest.mark.zookeeper
def test_the_address_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an address the command line says how to give one."""
    monkeypatch.delenv("KCONTROL_ZOOKEEPER", raising=False)
    done = CliRunner().invoke(app, ["zk", "show", "--observe"])
    assert isinstance(done.exception, UserError) and "--zookeeper host:port" in str(done.exception)
