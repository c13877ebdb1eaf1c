"""What goes wrong outside: one clear sentence, a status that is not zero, no traceback, and nothing left running."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl

from kcontrol import Lab, journal
from kcontrol.core.errors import UserError
from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper
from tests.lab.support import refusal, says, script
from tests.zookeeper.support import refused_port


def children() -> set[int]:
    """The processes below this one."""
    return {child.pid for child in psutil.Process().children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE}


@pytest.fixture(scope="module")
def foreign_server() -> Iterator[EmbeddedZooKeeper]:
    """A ZooKeeper server that no lab has started."""
    with EmbeddedZooKeeper() as server:
        yield server


@pytest.fixture
def owner(foreign_server: EmbeddedZooKeeper) -> Iterator[KazooClient]:
    """A client of the foreign server; the znodes that it has created are deleted at the end."""
    client = KazooClient(hosts=foreign_server.hosts)
    client.start()
    yield client
    for name in set(client.get_children("/")) - {"zookeeper"}:
        client.delete(f"/{name}", recursive=True)
    client.stop()
    client.close()


def every_znode(client: KazooClient, path: str = "/") -> dict[str, tuple[int, int, int]]:
    """czxid, mzxid and pzxid of every znode."""
    found, stat = {}, client.exists(path)
    found[path] = (stat.czxid, stat.mzxid, stat.pzxid)
    for name in client.get_children(path):
        found |= every_znode(client, f"{path.rstrip('/')}/{name}")
    return found


# ---------------------------------------------------------------- ZooKeeper


@pytest.mark.slow
def test_no_zookeeper_there(folder: Path) -> None:
    """A script that names a port without a listener ends with one sentence."""
    with refused_port() as port:
        done = script(f"from kcontrol import Lab\nLab(zookeeper='127.0.0.1:{port}')", folder)
    assert "No ZooKeeper can be reached" in says(done)


def test_an_address_that_is_none(opened: Callable[..., Lab]) -> None:
    """Text that is no address is refused with the legal form."""
    with pytest.raises(UserError) as problem:
        opened(zookeeper="boo")
    assert "host:port" in refusal(problem)


@pytest.mark.zookeeper
@pytest.mark.parametrize("root", ["/prod", "/prod/", ""])
def test_a_foreign_cluster(opened: Callable[..., Lab], foreign_server: EmbeddedZooKeeper, owner: KazooClient, root: str) -> None:
    """A ZooKeeper root with a cluster that is not ours is refused, and no znode is touched."""
    place = root.rstrip("/")
    owner.create(f"{place}/brokers/ids/7", b"{}", makepath=True)
    owner.create(f"{place}/controller", b'{"brokerid":7}')
    before, running = every_znode(owner), children()
    with pytest.raises(UserError) as problem:
        opened(zookeeper=foreign_server.hosts + root.rstrip("/"))
    assert "chroot" in refusal(problem)
    assert every_znode(owner) == before
    assert children() == running


@pytest.mark.zookeeper
def test_a_chroot_without_rights(opened: Callable[..., Lab], foreign_server: EmbeddedZooKeeper, owner: KazooClient) -> None:
    """A chroot below which we may not create is refused, and nothing is left there."""
    read_only = [make_acl("world", "anyone", read=True, admin=True)]
    owner.create("/closed", b"", acl=read_only)
    before = every_znode(owner)
    with pytest.raises(UserError) as problem:
        opened(zookeeper=f"{foreign_server.hosts}/closed/mine")
    assert "/closed" in refusal(problem)
    assert every_znode(owner) == before
    owner.set_acls("/closed", [make_acl("world", "anyone", all=True)])


@pytest.mark.zookeeper
def test_a_root_that_another_lab_works_on(
    opened: Callable[..., Lab], foreign_server: EmbeddedZooKeeper, owner: KazooClient
) -> None:
    """Two labs do not share a root: the second is refused, and the first goes on; a closed lab's root is used anew."""
    first = opened(zookeeper=foreign_server.hosts, topics={"t": [[1, 2]]})
    with pytest.raises(UserError) as problem:
        opened(zookeeper=foreign_server.hosts)
    assert "or choose another chroot, for example" in refusal(problem)
    assert first.kill(1).run().partitions().leader["t-0"] == 2
    first.close()
    assert owner.exists("/kcontrol-7/brokers/topics/t")
    second = opened(zookeeper=foreign_server.hosts)
    assert second.partitions().empty and second.brokers().controller_epoch[1] == 1


@pytest.mark.slow
@pytest.mark.zookeeper
def test_a_server_that_dies(opened: Callable[..., Lab]) -> None:
    """When the server is killed under a lab, the next act says so in one sentence, and the next lab has a server again."""
    before = children()
    lab = opened(1, world="zookeeper")
    (server,) = (process for process in map(psutil.Process, children() - before) if process.name() == "java")
    server.kill()
    with pytest.raises(UserError) as problem:
        lab.create_topic("t", [[1]]).run()
    assert "ZooKeeper does not respond: try again when it runs" in refusal(problem)
    assert not lab.journal().empty
    assert opened(1, world="zookeeper").brokers().controller[1]
    lab.close()


# ---------------------------------------------------------------- Java


WITHOUT_JAVA = {"KCONTROL_JAVA_HOME": "/there/is/none"}


@pytest.mark.slow
def test_no_java(folder: Path) -> None:
    """A script that wants a real ZooKeeper, or Spark, on a machine without Java ends in one sentence that says how to get it."""
    for line in ("Lab(world='zookeeper')", "Lab(1).spark()"):
        done = script(f"from kcontrol import Lab\n{line}", folder, **WITHOUT_JAVA)
        assert "Java" in says(done)


@pytest.mark.slow
def test_no_java_and_another_world_will_do(folder: Path) -> None:
    """With `otherwise` the sentence is printed, and the lab goes on in the simulated world."""
    code = "from kcontrol import Lab\nlab = Lab(1, world='zookeeper', otherwise='simulated')\nprint(lab._world.kind)"
    done = script(code, folder, **WITHOUT_JAVA)
    assert done.returncode == 0 and done.stderr == ""
    first, second = done.stdout.splitlines()
    assert "Java" in first and first.endswith("simulated world.") and second == "simulated"


@pytest.mark.slow
def test_no_java_and_spark_is_optional(folder: Path) -> None:
    """Where Spark is optional, whatever is asked of it shows the sentence, and pinned facts stay open."""
    code = (
        "from kcontrol import Lab, exercises\nlab = Lab(1)\nspark = lab.spark(optional=True)\n"
        "print(spark.sql('SELECT 1').toPandas())\nexercises.expect('rows', 3, spark.table('journal').count())\nlab.close()"
    )
    done = script(code, folder, **WITHOUT_JAVA)
    assert done.returncode == 0 and done.stderr == ""
    said, shown, fact = done.stdout.splitlines()
    assert said == shown and "Java" in said
    assert fact.startswith("○ rows: open")


# ---------------------------------------------------------------- files


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="This system has no /dev/full.")
def test_a_full_disk(folder: Path) -> None:
    """A journal that cannot be written is one sentence: a run's own file is given up and the lab goes on; `save` is an error."""
    code = (
        "from kcontrol import Lab\nlab = Lab(runs='/dev/full').kill(1).run()\nprint(len(lab.records) > 300, lab._file.path)\n"
        "lab.save('/dev/full')"
    )
    done = script(code, folder)
    assert "/dev/full" in says(done) and "No space left" in done.stderr
    said, goes_on = done.stdout.splitlines()
    assert "No space left on device" in said and said.endswith(".") and goes_on == "True None"


def test_a_folder_in_a_closed_folder(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """If the system does not say whether the folder of runs exists, the lab prints the reason and goes on without a file."""
    stat, make = Path.stat, Path.mkdir

    def refuse(path: Path) -> None:
        if path.is_relative_to(folder / "closed"):
            raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", lambda path, **given: refuse(path) or stat(path, **given))
    monkeypatch.setattr(Path, "mkdir", lambda path, *given, **more: refuse(path) or make(path, *given, **more))
    lab = Lab(runs=folder / "closed" / "runs").run()
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 1 and "cannot be written to" in said[0] and "Permission denied" in said[0] and lab._file.path is None


def test_a_folder_that_cannot_be_written(folder: Path, opened: Callable[..., Lab], capsys: pytest.CaptureFixture[str]) -> None:
    """Where `runs` cannot be made, the lab says so once and goes on without a file; Spark then says what is missing."""
    (folder / "runs").symlink_to(folder / "nowhere" / "else")
    lab = opened(1).kill(1).run()
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 1 and "cannot be written to" in said[0] and lab._file.path is None
    with pytest.raises(UserError) as problem:
        lab.spark()
    assert "runs=" in refusal(problem)


def test_a_run_is_kept_as_it_goes(lab: Lab, folder: Path) -> None:
    """The file has every record after every act, even if the process is killed; it opens as the same run."""
    lab.kill(1).run()
    assert lab._file.path is not None and lab._file.path.parent == folder / "runs"
    assert journal.read(lab._file.path) == [record.to_json() for record in lab.records]
    again = Lab.open(lab._file.path)
    assert again.partitions().equals(lab.partitions()) and again.journal().equals(lab.journal())


def test_every_run_has_a_file_of_its_own(opened: Callable[..., Lab], folder: Path) -> None:
    """Labs made in the same second and their branches do not write over each other; a branch's name is in its file's."""
    labs = [opened(1), opened(1), opened(1).branch('a "what/if"')]
    assert len({lab._file.path for lab in labs}) == 3
    assert labs[2]._file.path is not None and labs[2]._file.path.name.endswith("-simulated-a-what-if.jsonl")
    assert all(lab._file.path and lab._file.path.is_file() for lab in labs)


def test_no_file_is_wanted(opened: Callable[..., Lab], folder: Path) -> None:
    """With runs=None nothing is written."""
    opened(1, runs=None)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"boo\n", b'{"id":[1,1,1]}\n', b"\xff\xfe"])
def test_a_file_that_is_no_journal(folder: Path, content: bytes) -> None:
    """A file that holds something else is refused in one sentence."""
    (folder / "x.jsonl").write_bytes(content)
    with pytest.raises(UserError) as problem:
        Lab.open(folder / "x.jsonl")
    refusal(problem)


# ---------------------------------------------------------------- a broken /controller_epoch


@pytest.mark.parametrize("world", ["simulated", pytest.param("zookeeper", marks=[pytest.mark.zookeeper, pytest.mark.slow])])
def test_a_broken_controller_epoch(opened: Callable[..., Lab], capsys: pytest.CaptureFixture[str], world: str) -> None:
    """No controller is elected while `/controller_epoch` is no number: the lab prints and journals the error, and goes on."""
    lab = opened(world=world, topics={"t": [[1, 2, 3]]})
    lab.zk.set("/controller_epoch", "not a number").kill(1).run()
    failed = lab.journal("handler_error")
    assert failed.event.tolist() == ["Reelect", "Reelect"] and set(failed.error) == {"MalformedZnode"}
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2 and all("/controller_epoch" in line for line in said)
    assert not lab.brokers().controller.any() and lab.brokers().alive.loc[[2, 3]].all()
    lab.zk.set("/controller_epoch", "6").start(1).run()
    assert lab.brokers().controller[1] and lab.brokers().controller_epoch[1] == 7
