"""Starts Spark's Java process, which ends with this Python process and logs to a file.

Spark's own launcher needs bash and a Java module that small runtimes lack; PySpark can connect to a Java process that runs.
"""

import contextlib
import importlib.util
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kcontrol.pipeline.cluster import LOOPBACK, STANDALONE, SparkProblem, await_executor, check_master, is_on_loopback, ship_code
from kcontrol.pipeline.interrupts import cancel_jobs_on_interrupt
from kcontrol.zookeeper.server.java import ADD_SPARK, Java, find_java
from kcontrol.zookeeper.server.watcher import GuardedProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[2]"
HEAP, HEAP_SIZE, NO_MEMORY = "KCONTROL_SPARK_HEAP", re.compile(r"[1-9]\d*[mg]", re.IGNORECASE), "OutOfMemoryError"
LEAST_HEAP_MB = 512
NO_MEMORY_STATUS = 52
"""The exit status of Spark's Java if a task finds no heap memory. Source: SparkExitCode.OOM (Spark 4.3)."""
# Spark's text for a task whose executor, a number on a cluster and else "driver", had no heap memory or ended therefore.
# Source: TaskSetManager.handleFailedTask, ExecutorLostFailure.toErrorString (Spark 4.3).
EXECUTOR_MEMORY = re.compile(rf"executor \d+\): java\.lang\.{NO_MEMORY}|executor \d+ exited .* code {NO_MEMORY_STATUS}\b")
END_TIMEOUT_S = 10.0
READY_TIMEOUT_S = 60.0
POLL_S = 0.02
JVM_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=128m", "-XX:+IgnoreUnrecognizedVMOptions")
# The packages of java.base that Spark and Arrow access by reflection.
OPENED = (
    "java.io", "java.lang", "java.lang.invoke", "java.lang.reflect", "java.net", "java.nio", "java.util", "java.util.concurrent",
    "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs", "sun.util.calendar",
)  # fmt: skip
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
    # This rule of Spark 4.3 drops columns of a common table expression that is named twice, so that the query fails; without the
    # rule the query reads more columns.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PushdownPredicatesAndPruneColumnsForCTEDef",
}


class Gateway:
    """A Java process, started by kcontrol, with the gateway to which PySpark connects.

    `log` is its log file, in a folder that exists until Java ends. Java's heap has the size that `heap_size` returns.

    Args:
        on_loopback: True if all processes of Spark are on this machine; if False, Spark finds the address of this machine.

    Raises:
        SparkProblem: PySpark is not installed, the size of the heap is wrong, or Java ended or did not respond.
        JavaProblem: there is no Java that is new enough.
    """

    def __init__(self, *, on_loopback: bool = True) -> None:
        spec = importlib.util.find_spec("pyspark")
        if spec is None or spec.origin is None:
            raise SparkProblem(f"Spark is not installed: {ADD_SPARK}.")
        self.heap, java = heap_size(), find_java()
        self.folder = Path(tempfile.mkdtemp(prefix="kcontrol-spark-"))
        self.log = self.folder / "spark.log"
        connection = self.folder / "connection"
        home = Path(spec.origin).parent
        env = os.environ | {
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection),
            "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable,
        } | ({"SPARK_LOCAL_IP": LOOPBACK} if on_loopback else {})  # fmt: skip
        command = self._command(java, home, self.heap, self.folder)
        self._process = GuardedProcess(command, log=self.log, env=env, remove=self.folder)
        try:
            self.port, self.secret = self._await_connection(connection)
        except BaseException:
            self._process.stop()
            raise

    @staticmethod
    def _command(java: Java, home: Path, heap: str, folder: Path) -> list[str | Path]:
        # Java 24 and newer warn about the memory access of Netty and Arrow without this option; older releases reject the option.
        allowed = ["--sun-misc-unsafe-memory-access=allow"] if java.version >= 24 else []
        opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        # Java is ended by a signal, so its libraries do not delete the files that they unpack: `folder` is deleted.
        return [
            java.path, f"-Xmx{heap}", f"-Djava.io.tmpdir={folder}", *JVM_FLAGS, *opens, *allowed,
            "--enable-native-access=ALL-UNNAMED", "-Dio.netty.tryReflectionSetAccessible=true", "-cp",
            f"{home}/conf/{os.pathsep}{home}/jars/*", "org.apache.spark.deploy.SparkSubmit", "pyspark-shell",
        ]  # fmt: skip

    def _await_connection(self, path: Path) -> tuple[int, str]:
        """Wait for the file `path`, in which Spark's gateway writes its port and secret; return (port, secret).

        Raises SparkProblem if Java ends, or if the file is still missing after 60 s (READY_TIMEOUT_S).
        """
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not path.exists():
            if self._process.poll() is not None:
                raise SparkProblem(
                    "Spark's Java ended while it started: kcontrol doctor shows whether Java and memory are in order."
                )
            if time.monotonic() > deadline:
                raise SparkProblem(f"Spark did not start within {READY_TIMEOUT_S:.0f} s: close other programs and try again.")
            time.sleep(POLL_S)
        content = path.read_bytes()
        return int.from_bytes(content[:4], "big"), content[8:].decode()

    @property
    def pid(self) -> int:
        """The process id of Spark's Java."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Return whether Spark's Java still runs."""
        return self._process.poll() is None

    def ended(self) -> int | None:
        """Wait up to 10 s for the end of Spark's Java process; return its exit status, None if it still runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(END_TIMEOUT_S)
        return None

    def stop(self) -> None:
        """End Spark's Java process and delete its temporary folder; a second call does nothing."""
        self._process.stop()


def heap_size() -> str:
    """Return the heap size of Spark's Java: the environment variable KCONTROL_SPARK_HEAP, such as "2g", else "512m".

    Raises SparkProblem for a value that is no size, and for a size below 512 MB.
    """
    size = os.environ.get(HEAP) or f"{LEAST_HEAP_MB}m"
    # With less than about 470 MB Spark does not start.
    if not HEAP_SIZE.fullmatch(size) or int(size[:-1]) * (1024 if size[-1] in "gG" else 1) < LEAST_HEAP_MB:
        raise SparkProblem(f"{HEAP} is {size!r}: write a size of at least {LEAST_HEAP_MB}m, such as 2g.")
    return size


_gateway: Gateway | None = None


def loss(problem: Exception) -> SparkProblem | None:
    """Return an error, in one sentence, if `problem` shows that Spark's Java has ended or has no heap memory left.

    Return None if `problem` has another cause.
    """
    try:
        text = str(problem)
    except Exception:  # py4j asks Java for the text of an error; without Java it raises errors of many types
        text = None
    is_lost = text is None or isinstance(problem, ConnectionError) or type(problem).__name__ == "Py4JNetworkError"
    status = _gateway.ended() if is_lost and _gateway is not None else None
    if EXECUTOR_MEMORY.search(text or ""):
        return SparkProblem(
            "The memory of Spark's executors is too small for these files, and no table was replaced: write a larger"
            " spark.executor.memory than the default 1g, such as 2g, into spark-defaults.conf (docs/spark-cluster.md), or name"
            " fewer files."
        )
    if NO_MEMORY in (text or "") or status == NO_MEMORY_STATUS:
        size = f" of {_gateway.heap}" if _gateway is not None else ""
        return SparkProblem(
            f"Spark's memory{size} is too small for these files, and no table was replaced: set {HEAP} to a larger size,"
            " such as 2g, or name fewer files."
        )
    if status is None:
        return None
    return SparkProblem(
        f"Spark's Java ended too early (exit status {status}), and no table was replaced: close other programs and try again."
    )


def needs_own_gateway(master: str) -> bool:
    """Not under spark-submit, which has started Java, and not for masters that Spark's launcher must start."""
    is_known = master == "local" or master.startswith(("local[", STANDALONE))
    return "PYSPARK_GATEWAY_PORT" not in os.environ and is_known


def forget() -> None:
    """Remove PySpark's references to a Java process that has ended, so that Spark can start again in this process."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def shorten_sql_errors() -> None:
    """Let a notebook show the first line of an error about a learner's SQL, in place of the traceback and Spark's plan."""
    from pyspark.errors import AnalysisException
    from pyspark.logger import PySparkLogger

    # PySpark would print each such error a second time, as one line of JSON with the stack traces of Java and Python.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
    # IPython calls this method; ParseException inherits it. A plan of a view has more than 100 lines.
    AnalysisException._render_traceback_ = lambda self: [str(self).strip().partition("\n")[0]]


def connect(gateway: Gateway) -> None:
    """Connect PySpark to this gateway.

    The gateway's port and secret are in the environment only for the connection, so child processes do not inherit them.
    """
    from pyspark import SparkContext

    forget()
    # Python would print the stack traces that py4j logs when Java ends; `loss` makes one sentence of them.
    logging.getLogger("py4j").addHandler(logging.NullHandler())
    shorten_sql_errors()
    names = {"PYSPARK_GATEWAY_PORT": str(gateway.port), "PYSPARK_GATEWAY_SECRET": gateway.secret}
    os.environ.update(names)
    try:
        SparkContext._ensure_initialized()
    finally:
        for name in names:
            os.environ.pop(name, None)


def spark_session(master: str = LOCAL, **settings: str) -> "SparkSession":
    """Return a Spark session for small tables; later calls return the open session, which keeps its master.

    Args:
        master: Spark's master. Executors of a cluster `spark://HOST:PORT` get the package kcontrol as an archive. For any other
            value but `local` and `local[...]` Spark's own launcher is used.
        settings: further settings of Spark, with dots written as two underscores (`spark__sql__ansi__enabled="false"`).

    Raises:
        SparkProblem: PySpark is not installed, Spark did not start, the cluster cannot be used, or the open session has another
            master than this cluster.
        JavaProblem: there is no Java that is new enough.
    """
    global _gateway
    if importlib.util.find_spec("pyspark") is None:
        raise SparkProblem(f"Spark is not installed: {ADD_SPARK}.")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    is_cluster, on_loopback = master.startswith(STANDALONE), is_on_loopback(master)
    if is_cluster:
        _check_open_session(master)
        check_master(master)
    chosen = {name: value for name, value in SETTINGS.items() if on_loopback or value != LOOPBACK}
    if needs_own_gateway(master):
        if _gateway is None or not _gateway.is_alive():
            _gateway = Gateway(on_loopback=on_loopback)
            connect(_gateway)
        chosen |= {"spark.local.dir": str(_gateway.folder), "spark.sql.warehouse.dir": str(_gateway.folder / "warehouse")}
    chosen |= {name.replace("__", "."): value for name, value in settings.items()}
    return _cluster_session(master, chosen) if is_cluster else _session(master, chosen)


def _session(master: str, settings: dict[str, str]) -> "SparkSession":
    """Return the Spark session that is open in this process; without it, a new session with `master` and `settings`."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("kcontrol")
    for name, value in settings.items():
        builder = builder.config(name, value)
    former = signal.getsignal(signal.SIGINT)
    session = builder.getOrCreate()
    cancel_jobs_on_interrupt(former)
    return session


def _check_open_session(master: str) -> None:
    """Raise SparkProblem if a session is open and has another master than `master`, the address of a cluster."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None and (_gateway is None or _gateway.is_alive()) and context.master != master:
        raise SparkProblem(f"Spark is open with the master {context.master}: close it before you use {master}.")


def _cluster_session(master: str, settings: dict[str, str]) -> "SparkSession":
    """Return a session with these settings of Spark on the standalone cluster `master`; its executors have the package kcontrol.

    Raises SparkProblem if the master refuses the session, or if no executor starts.
    """
    from py4j.protocol import Py4JError

    try:
        spark = _session(master, settings)
        await_executor(spark, master)
        if _gateway is not None:
            ship_code(spark, _gateway.folder)
    except Py4JError:
        stop_spark()
        raise SparkProblem(
            f"The Spark master at {master} refuses kcontrol: it needs the version of Spark that kcontrol has."
        ) from None
    except SparkProblem:
        stop_spark()
        raise
    return spark


@contextlib.contextmanager
def open_session() -> "Iterator[SparkSession]":
    """Yield the open Spark session; if none is open, yield a new one and end it after the `with` block.

    Raises SparkProblem if Spark is missing or fails to start, JavaProblem without Java 17.
    """
    was_open = _gateway is not None and _gateway.is_alive()
    session = spark_session()
    try:
        yield session
    finally:
        if not was_open:
            stop_spark()


def stop_spark() -> None:
    """End the Spark session and the Java that kcontrol started for it, which frees the memory.

    Do nothing if kcontrol has started no Java: a session of spark-submit or of Spark's own launcher stays open.
    """
    global _gateway
    if _gateway is None:
        return
    from pyspark import SparkContext

    with contextlib.suppress(Exception):  # Without its Java py4j raises errors of many types.
        if SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.stop()
        if SparkContext._gateway is not None:
            SparkContext._gateway.shutdown()
    forget()
    _gateway.stop()
    _gateway = None
