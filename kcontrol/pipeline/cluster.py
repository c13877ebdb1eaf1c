"""Functions for Spark's standalone cluster: check the address of its master, send it kcontrol, wait for an executor."""

from __future__ import annotations

import re
import socket
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from kcontrol.core.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STANDALONE = "spark://"
LOCAL = re.compile(r"local(\[([1-9][0-9]{0,3}|\*)\])?")
LOOPBACK = "127.0.0.1"
ANSWER_TIMEOUT_S, EXECUTOR_TIMEOUT_S, POLL_S = 5.0, 60.0, 0.02


class SparkProblem(UserError):
    """Spark is missing or does not start, or a Spark cluster cannot be used."""


def check_master(master: str, *, is_local_legal: bool = False) -> None:
    """Raise SparkProblem if `master` is not the address of a standalone master, or if no process accepts connections there.

    With `is_local_legal` Spark on this machine, such as "local[2]", is legal too.
    """
    if is_local_legal and LOCAL.fullmatch(master):
        return
    more = ", or local[N] for N cores of this machine, such as local[2]" if is_local_legal else ""
    host, _, port = master.removeprefix(STANDALONE).rpartition(":")
    if not master.startswith(STANDALONE) or not host or not port.isdecimal():
        raise SparkProblem(
            f"{master!r} is not the address of a Spark master: write spark://HOST:PORT{more}; for YARN and Kubernetes "
            "read docs/spark-cluster.md."
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_TIMEOUT_S).close()
    except (OSError, OverflowError, UnicodeError):
        raise SparkProblem(f"No Spark master answers at {master}: start the master, or leave out its address.") from None


def is_on_loopback(master: str) -> bool:
    """Spark then needs no address of this machine but 127.0.0.1."""
    host = master.removeprefix(STANDALONE).rpartition(":")[0]
    return not master.startswith(STANDALONE) or host == "localhost" or host.startswith("127.")


def ship_code(spark: SparkSession, folder: Path) -> None:
    """Send the package kcontrol as an archive, made in `folder`, to the executors, for the Python functions that they run.

    If `folder` has the archive, it was sent: do nothing.
    """
    package = Path(__file__).resolve().parents[1]
    archive = folder / f"{package.name}.zip"
    if archive.exists():
        return
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(package.rglob("*")):
            if file.is_file() and file.suffix != ".pyc":
                packed.write(file, file.relative_to(package.parent))
    spark.sparkContext.addPyFile(str(archive))


def await_executor(spark: SparkSession, master: str) -> None:
    """Wait until the cluster has started an executor, without which Spark would wait for ever.

    Raises SparkProblem, which names `master`, if no executor has started after 60 seconds.
    """
    deadline = time.monotonic() + EXECUTOR_TIMEOUT_S
    status = spark.sparkContext._jsc.sc().statusTracker()
    while len(status.getExecutorInfos()) < 2:  # the driver is in the list too
        if time.monotonic() > deadline:
            raise SparkProblem(
                f"The Spark cluster {master} started no executor within {EXECUTOR_TIMEOUT_S:.0f} s: look whether it has a worker "
                "with free cores and memory (spark.executor.memory, by default 1 GB)."
            )
        time.sleep(POLL_S)  # only a listener in Java is called for a new executor
