"""A standalone Spark cluster on loopback: a master and two workers, each a process of its own, made of PySpark's own jars."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyspark

from kcontrol.pipeline.gateway import OPENED
from kcontrol.zookeeper.server.java import find_java
from kcontrol.zookeeper.server.watcher import GuardedProcess

JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
WITHIN_S, POLL_S = 60.0, 0.02
# A proxy that is set on the machine does not lead to this machine's own ports.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
# Spark starts executors with a module that the Java of the packages lacks.
JAVA = """#!/bin/sh
for given do
    shift
    [ "$given" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$given"
done
exec "{java}" "$@"
"""


class SparkCluster(NamedTuple):
    """The address of a master, the address of its page, its workers, and a folder with the configuration of a driver."""

    address: str
    page: str
    workers: list[GuardedProcess]
    configuration: Path

    def state(self) -> dict[str, Any]:
        """Return what the master says about its workers and applications."""
        found: dict[str, Any] = answer(f"{self.page}/json/")
        return found

    def executor(self, worker: int, application: str) -> str:
        """Return the id of the executor that a worker has for an application: the worker makes a folder with this name."""
        (folder,) = (self.configuration.parent / f"worker{worker}" / application).iterdir()
        return folder.name

    def alive(self) -> int:
        return len([worker for worker in self.state()["workers"] if worker["state"] == "ALIVE"])


def answer(address: str) -> Any:
    """Return the JSON at an address of Spark."""
    with OPENER.open(address, timeout=WITHIN_S) as content:
        return json.load(content)


def wait_until(happened: Callable[[], Any], process: GuardedProcess | None = None) -> Any:
    """Return the first true value of a function, asked again and again; fail after a time or if the process ends."""
    deadline = time.monotonic() + WITHIN_S
    while not (found := happened()):
        assert time.monotonic() < deadline, "the event did not happen in time"
        assert process is None or process.poll() is None, "the process has ended"
        time.sleep(POLL_S)
    return found


def in_log(log: Path, pattern: str) -> Callable[[], str | None]:
    """Return a function of the first group of a pattern in a log file, None as long as the pattern is not there."""

    def found() -> str | None:
        match = re.search(pattern, log.read_text()) if log.exists() else None
        return match[1] if match else None

    return found


def _process(folder: Path, name: str, main: str, *arguments: str) -> GuardedProcess:
    """Start a class of Spark with the Java of the packages; its log is a file with the name of the process."""
    home, java = Path(pyspark.__file__).parent, folder / "java" / "bin" / "java"
    names = {
        "SPARK_HOME": str(home), "JAVA_HOME": str(java.parents[1]), "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / name), "SPARK_LOCAL_DIRS": str(folder / name), "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    flags = ["-Xmx256m", *JVM.split(), f"-Djava.io.tmpdir={folder}"]
    command = [java, *flags, *opens, "-cp", f"{home}/jars/*", main, "--host", "127.0.0.1", "--webui-port", "0", *arguments]
    return GuardedProcess(command, log=folder / f"{name}.log", env=os.environ | names)


@contextmanager
def spark_cluster(folder: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """Start a master and its workers, each with one core and 1 GB for executors; end all of them in the end."""
    java, configuration = folder / "java" / "bin" / "java", folder / "configuration"
    java.parent.mkdir(parents=True)
    java.write_text(JAVA.format(java=find_java().path))
    java.chmod(0o755)
    configuration.mkdir()
    (configuration / "spark-defaults.conf").write_text(f"spark.executor.memory 512m\nspark.executor.extraJavaOptions {JVM}\n")
    with ExitStack() as processes:
        master = processes.enter_context(_process(folder, "master", "org.apache.spark.deploy.master.Master", "--port", "0"))
        log = folder / "master.log"
        address = wait_until(in_log(log, r"Starting Spark master at (spark://\S+)"), master)
        port = wait_until(in_log(log, r"Successfully started service 'MasterUI' on port (\d+)"), master)
        started = [
            processes.enter_context(
                _process(folder, f"worker{n}", "org.apache.spark.deploy.worker.Worker", "-c", "1", "-m", "1g", address)
            )
            for n in range(workers)
        ]
        cluster = SparkCluster(address, f"http://127.0.0.1:{port}", started, configuration)
        wait_until(lambda: cluster.alive() == workers, master)
        yield cluster


class Status(NamedTuple):
    """An application's status over HTTP (https://spark.apache.org/docs/latest/monitoring.html, "REST API")."""

    address: str

    @property
    def application(self) -> str:
        return self.address.rpartition("/")[2]

    def is_active(self, executor: str) -> bool:
        """Return whether an executor runs a task."""
        (found,) = (item for item in answer(f"{self.address}/executors") if item["id"] == executor)
        return bool(found["activeTasks"])

    def lost(self, executor: str) -> list[str]:
        """Return the errors of the tasks that failed because this executor ended while it ran them."""
        failed = [stage for stage in answer(f"{self.address}/stages") if stage["numFailedTasks"]]
        places = [f"{self.address}/stages/{stage['stageId']}/{stage['attemptId']}/taskList?status=failed" for stage in failed]
        tasks = [task for place in places for task in answer(place) if task["executorId"] == executor]
        return [task["errorMessage"] for task in tasks if "ExecutorLostFailure" in task["errorMessage"]]


LOOKS = 3
"""The end of a task that the executor sent just before it was stopped is in one of so many answers of the driver."""


def kill_in_a_task(cluster: SparkCluster, worker: int, status: Status) -> str:
    """Send SIGKILL to a worker and its executor while the executor runs a task; return the executor's id."""
    executor, group = cluster.executor(worker, status.application), cluster.workers[worker].pid

    def is_stopped_in_a_task() -> bool:
        if not status.is_active(executor):
            return False
        os.killpg(group, signal.SIGSTOP)  # the task cannot end any more
        if all(status.is_active(executor) for _ in range(LOOKS)):
            return True
        os.killpg(group, signal.SIGCONT)
        return False

    wait_until(is_stopped_in_a_task)
    os.killpg(group, signal.SIGKILL)
    return executor
