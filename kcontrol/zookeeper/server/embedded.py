"""A real ZooKeeper on a loopback port, from the jars that PySpark includes."""

import importlib.util
import itertools
import os
import socket
import tempfile
import time
from pathlib import Path
from types import TracebackType

from kcontrol.core.errors import UserError
from kcontrol.zookeeper.server.java import ADD_SPARK, find_java
from kcontrol.zookeeper.server.watcher import GuardedProcess

READY_TIMEOUT_S = 30.0
POLL_S = 0.01
ANSWER_TIMEOUT_S = 0.2
PORT_ATTEMPTS = 5
JVM_FLAGS = (
    "-Xmx64m", "-Xms16m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=64m",
    # The data lives as long as the server, so it need not reach the disk, and 64 kB are enough for a first log file.
    "-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=64", "-Dzookeeper.jmx.log4j.disable=true",
)  # fmt: skip
# All of Spark's jars would work too; with these few the start is twice as fast and takes 30 MB less.
JARS = (
    "zookeeper", "zookeeper-jute", "audience-annotations", "commons-io", "log4j-api", "log4j-core", "log4j-slf4j2-impl",
    "metrics-core", "slf4j-api", "snappy-java",
)  # fmt: skip


class ZooKeeperProblem(UserError):
    """The embedded ZooKeeper cannot be started."""


class _PortTaken(Exception):
    """The error if another process takes the port between `free_port` and the start of the ZooKeeper server."""


def class_path() -> str:
    """Return the jars that ZooKeeper needs, joined for `java -cp`. PySpark is located without an import.

    Raises:
        ZooKeeperProblem: PySpark is not installed, or has no ZooKeeper jars.
    """
    spec = importlib.util.find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec and spec.origin else None
    jars = [sorted(folder.glob(f"{name}-[0-9]*.jar")) for name in JARS] if folder else []
    if not jars or not jars[0]:
        raise ZooKeeperProblem(f"The real ZooKeeper is part of PySpark, which is not installed: {ADD_SPARK}.")
    return os.pathsep.join(str(jar) for jar in itertools.chain.from_iterable(jars))


def free_port() -> int:
    """Return a loopback port on which no process listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_taken(port: int) -> bool:
    """Return whether this process cannot bind the loopback port, for example because a process listens on it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


class EmbeddedZooKeeper:
    """A ZooKeeper 3.9 server on this machine; as a context manager it serves inside the block.

    When the block or this process ends, even by SIGKILL, the server is ended, and its folder with data and log is deleted.

    Args:
        port: the loopback port; by default a free port.
        tick_time_ms: ZooKeeper's tick: half of the shortest session timeout that is granted.
        longest_session_ms: the longest session timeout that is granted.

    Attributes:
        port: the loopback port on which the server listens.
        hosts: the connection string, `127.0.0.1:port`.
        pid: the server's process id.
        log: the path of the server's log, which exists after `start`.

    Raises:
        ZooKeeperProblem: the jars are missing, the port is in use, or the server did not start.
        JavaProblem: there is no Java that is new enough.
    """

    def __init__(self, port: int | None = None, tick_time_ms: int = 500, longest_session_ms: int = 60_000) -> None:
        self._wanted_port = port
        self._tick_time_ms, self._longest_session_ms = tick_time_ms, longest_session_ms
        self._process: GuardedProcess | None = None
        self.port = 0

    @property
    def hosts(self) -> str:
        """The connection string of this server for a ZooKeeper client, `127.0.0.1:port`."""
        return f"127.0.0.1:{self.port}"

    @property
    def is_serving(self) -> bool:
        """Whether this server answers requests.

        Another server that was started at the same moment may have got the same port; its data has another folder.
        """
        answer, deadline_s = b"", time.monotonic() + ANSWER_TIMEOUT_S
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=ANSWER_TIMEOUT_S) as link:
                link.sendall(b"conf")  # only a server that has started answers with its settings
                while (part := link.recv(4096)) and time.monotonic() < deadline_s:
                    answer += part
        except OSError:
            return False
        return f"dataDir={self.log.parent / 'data'}{os.sep}".encode() in answer

    @property
    def pid(self) -> int:
        """The server's process id; 0 while it does not run."""
        return self._process.pid if self._process else 0

    def start(self) -> "EmbeddedZooKeeper":
        """Start the server, and return this object once the server serves requests.

        Raises ZooKeeperProblem if the server cannot be started, as on a port in use, and JavaProblem without a new enough Java.
        """
        if self._wanted_port is not None and is_taken(self._wanted_port):
            raise ZooKeeperProblem(f"Port {self._wanted_port} is in use: choose another one, or none to get a free one.")
        java, classes = find_java().path, class_path()
        for attempt in itertools.count(1):
            try:
                self._start_on(self._wanted_port or free_port(), java, classes)
            except _PortTaken as race:
                if self._wanted_port is not None or attempt == PORT_ATTEMPTS:
                    raise ZooKeeperProblem("Another process took the port while ZooKeeper started: try again.") from race
            else:
                return self
        raise AssertionError("unreachable")

    def _start_on(self, port: int, java: Path, classes: str) -> None:
        folder = Path(tempfile.mkdtemp(prefix="kcontrol-zookeeper-"))
        self.log = folder / "zookeeper.log"
        settings = {
            "dataDir": folder / "data", "clientPort": port, "clientPortAddress": "127.0.0.1", "tickTime": self._tick_time_ms,
            "minSessionTimeout": 2 * self._tick_time_ms, "maxSessionTimeout": self._longest_session_ms, "maxClientCnxns": 0,
            "admin.enableServer": "false", "4lw.commands.whitelist": "conf",
        }  # fmt: skip
        (folder / "zoo.cfg").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command: list[str | Path] = [
            java, *JVM_FLAGS, "-cp", classes, "org.apache.zookeeper.server.ZooKeeperServerMain", folder / "zoo.cfg",
        ]  # fmt: skip
        self._process = GuardedProcess(command, log=self.log, remove=folder)
        self.port = port
        try:
            self._await_ready()
        except BaseException:
            self.stop()
            raise

    def _await_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self.is_serving:
            if self._process.poll() is not None:
                # The folder with the log is deleted by now; a taken port is the only cause that can still be recognized.
                if is_taken(self.port):
                    raise _PortTaken
                raise ZooKeeperProblem(
                    "ZooKeeper ended while it started: kcontrol doctor shows whether Java and memory are in order."
                )
            if time.monotonic() > deadline:
                raise ZooKeeperProblem(
                    f"ZooKeeper did not answer within {READY_TIMEOUT_S:.0f} s: close other programs and try again."
                )
            time.sleep(POLL_S)

    def wait(self) -> None:
        """Wait until the server's process ends; return at once if the server was not started."""
        if self._process is not None:
            self._process.wait()

    def stop(self) -> None:
        """End the process of the ZooKeeper server and delete the server's folder; a second call does nothing."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def __enter__(self) -> "EmbeddedZooKeeper":
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
