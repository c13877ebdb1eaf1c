"""The embedded ZooKeeper serves, leaves nothing behind, and says clearly why it cannot start."""

import importlib.util
import socket
from importlib.machinery import ModuleSpec
from pathlib import Path

import psutil
import pytest

from kcontrol.zookeeper.kazoo.read import read_znode
from kcontrol.zookeeper.server import embedded
from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper, ZooKeeperProblem, free_port
from kcontrol.zookeeper.server.java import JavaProblem
from tests.infra.processes import python, still_running, wait_until_absent

OWNER = """
import sys
from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper
with EmbeddedZooKeeper() as server:
    print(server.pid, server.log.parent, sep="\\n", flush=True)
    sys.stdin.read()
"""


@pytest.mark.zookeeper
def test_it_serves_and_leaves_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Inside the block the server answers, on the loopback interface alone; after it process and folder are gone."""
    with EmbeddedZooKeeper() as server:
        assert server.hosts == f"127.0.0.1:{server.port}"
        assert server.is_serving
        assert read_znode(server.hosts, "/zookeeper").stat.num_children == 2
        listening = {c.laddr.ip for c in psutil.Process(server.pid).net_connections("inet") if c.status == psutil.CONN_LISTEN}
        assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}
        folder = server.log.parent
        pid = server.pid
    assert still_running([pid]) == []
    assert not folder.exists()
    assert capfd.readouterr() == ("", "")


@pytest.mark.zookeeper
def test_it_dies_with_its_owner() -> None:
    """After SIGKILL of the process that started it, server and folder are gone."""
    with python(OWNER) as owner:
        assert owner.stdout is not None
        pid, folder = int(owner.stdout.readline()), Path(owner.stdout.readline().strip())
        owner.kill()
        assert still_running([pid]) == []
        assert wait_until_absent(folder)


@pytest.mark.zookeeper
@pytest.mark.slow
def test_a_port_that_is_taken_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """If another process takes the free port before the server binds it, the server uses another port."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        ports = iter([other.getsockname()[1], free_port()])
        monkeypatch.setattr(embedded, "free_port", lambda: next(ports))
        with EmbeddedZooKeeper() as server:
            assert server.port != other.getsockname()[1]
            assert server.is_serving


@pytest.mark.zookeeper
@pytest.mark.slow
def test_two_servers_that_chose_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server that another one beat to its port does not take the other for itself: it gets another port."""
    with EmbeddedZooKeeper() as first:
        ports = iter([first.port, free_port()])
        monkeypatch.setattr(embedded, "free_port", lambda: next(ports))
        with EmbeddedZooKeeper() as second:
            assert first.is_serving and second.is_serving and second.port != first.port
        assert first.is_serving and not second.is_serving


def test_a_port_in_use() -> None:
    """A given port that is in use is refused in one sentence, before anything starts."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ZooKeeperProblem, match=f"^Port {port} is in use: choose another one"):
            EmbeddedZooKeeper(port).start()


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without Java the error is Java's own sentence."""
    monkeypatch.setenv("KCONTROL_JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaProblem, match="KCONTROL_JAVA_HOME"):
        EmbeddedZooKeeper().start()


@pytest.mark.zookeeper
def test_no_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PySpark the sentence says that ZooKeeper comes with it and how to get it."""
    find_spec = importlib.util.find_spec

    def without_spark(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "pyspark" else find_spec(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without_spark)
    with pytest.raises(ZooKeeperProblem, match=r"part of PySpark, which is not installed: run \./run lab without --light"):
        EmbeddedZooKeeper().start()


@pytest.mark.zookeeper
def test_a_server_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java that ends at once raises ZooKeeperProblem with one sentence, and no process is left."""
    monkeypatch.setattr(embedded, "JVM_FLAGS", ("-XX:NoSuchFlag",))
    server = EmbeddedZooKeeper()
    with pytest.raises(ZooKeeperProblem, match=r"^ZooKeeper ended while it started: kcontrol doctor shows whether"):
        server.start()
    assert server.pid == 0
    assert not server.log.parent.exists()
