"""Measure the lines of broker logs that `kcontrol pipeline logs` reads per second, compared with Spark that only reads them.

Usage: python -m benchmarks.logs [--megabytes 2000] [--keep FOLDER]

The logs are written by kcontrol: one run of eight brokers in the words of each of three releases, once for each hour, in files
such as server.log.2020-01-01-10. Stack traces follow some records, so that 46 in 100 lines continue a record: the share in the
476,977 lines of real logs with which the patterns were checked. Each part runs in a process of its own, the command as a user
runs it; the peer reads the same files with Spark's text source and adds up the lengths of the lines. Seconds are of the clock and
of the processors; memory is the largest resident set of one process of the part.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kcontrol import Lab

RELEASES = ("0.8.1", "0.9", "2.8")
CONTINUED = 46 / 54  # lines that continue a record, for each first line of a record
TRACE = (
    "java.io.IOException: Connection to 2 was disconnected before the response was read",
    "\tat org.apache.kafka.clients.NetworkClientUtils.sendAndReceive(NetworkClientUtils.java:100)",
    "\tat kafka.controller.RequestSendThread.doWork(ControllerChannelManager.scala:{n})",
)
PEER = """
import sys
from pyspark.sql import functions as sql
from kcontrol.pipeline.gateway import spark_session, stop_spark
from kcontrol.pipeline.logs.files import log_files
from pathlib import Path
spark = spark_session()
text = spark.read.text([str(path) for path in log_files([Path(sys.argv[1])])])
print(text.agg(sql.count("*"), sql.sum(sql.length("value"))).collect())
stop_spark()
"""


def run_of(release: str) -> Lab:
    topics = {f"t{n}": [[1 + (n + p) % 8, 1 + (n + p + 1) % 8, 1 + (n + p + 2) % 8] for p in range(12)] for n in range(40)}
    lab = Lab(brokers=8, release=release, topics=topics, runs=None).run()
    for action in [
        ("kill", 2),
        ("kill", 4),
        ("start", 2),
        ("start", 4),
        ("terminate", 3),
        ("kill", 1),
        ("start", 3),
        ("start", 1),
    ]:
        lab.step(action).run()
    return lab


def write_logs(folder: Path, megabytes: int) -> int:
    """Write log files of `megabytes` or a little more into `folder`; return the number of their lines."""
    lines = size = hours = 0
    with tempfile.TemporaryDirectory() as place:
        for release in RELEASES:
            run_of(release).save_logs(Path(place) / release)
        originals = {path.relative_to(place): path.read_text().splitlines() for path in sorted(Path(place).rglob("*.log"))}
    while size < megabytes * 1_000_000:
        hour = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
        for name, records in originals.items():
            text = [line for n, record in enumerate(records) for line in with_trace(record, n, hour)]
            path = folder / name.parent / f"{name.name}.{hour:%Y-%m-%d-%H}"
            path.parent.mkdir(parents=True, exist_ok=True)
            size += path.write_text("".join(f"{line}\n" for line in text))
            lines += len(text)
        hours += 1
    return lines


def with_trace(record: str, n: int, hour: datetime) -> list[str]:
    """Return the lines of the nth record of a file, moved to `hour`; from some records on a stack trace follows."""
    continued = int((n + 1) * CONTINUED / len(TRACE)) > int(n * CONTINUED / len(TRACE))
    moved = record.replace("[1970-01-01 00:", f"[{hour:%Y-%m-%d %H}:", 1)
    return [moved, *(line.format(n=n) for line in TRACE)] if continued else [moved]


def measured(command: list[str]) -> tuple[float, float, float]:
    """Return the clock's seconds, the processors' seconds and the megabytes of the largest process of a command."""
    began = time.monotonic()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}.")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(dir=arguments.keep) as place:
        folder, out = Path(place) / "logs", Path(place) / "tables"
        lines = write_logs(folder, arguments.megabytes)
        print(f"{lines:,} lines in {sum(1 for _ in folder.rglob('*.log.*'))} files, load {os.getloadavg()[0]:.1f}", flush=True)
        ours = measured([sys.executable, "-m", "kcontrol", "pipeline", "logs", str(folder), "--out", str(out)])
        peer = measured([sys.executable, "-c", PEER, str(folder)])
    for name, (clock, processors, megabytes) in (("pipeline logs", ours), ("read only", peer)):
        print(f"{name:14} {clock:8.1f} s {lines / clock:10,.0f} lines/s  {processors:8.1f} s of processors  {megabytes:6,.0f} MB")
    print(f"ratio of lines per second: {peer[0] / ours[0]:.3f}; of processor seconds: {peer[1] / ours[1]:.3f}")
    print(f"largest process of the whole: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=2_000)
    parser.add_argument("--keep", default=None, help="a folder in which the logs are written and deleted again")
    main(parser.parse_args())
