"""Run one official broker as a process, and read what is new in its logs."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from tests.oracle.state_change_log import STAMP

HOST = "127.0.0.1"
OPENS = [
    f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in ("java.nio", "sun.nio.ch", "jdk.internal.ref", "java.lang", "java.util")
]
JVM = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]
LOG4J = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.FileAppender
log4j.appender.out.File=${klog}/server.log
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.appender.ctl=org.apache.log4j.FileAppender
log4j.appender.ctl.File=${klog}/controller.log
log4j.appender.ctl.layout=org.apache.log4j.PatternLayout
log4j.appender.ctl.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.appender.sc=org.apache.log4j.FileAppender
log4j.appender.sc.File=${klog}/state-change.log
log4j.appender.sc.layout=org.apache.log4j.PatternLayout
log4j.appender.sc.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.appender.req=org.apache.log4j.FileAppender
log4j.appender.req.File=${klog}/request.log
log4j.appender.req.layout=org.apache.log4j.PatternLayout
log4j.appender.req.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.logger.kafka.controller=TRACE, ctl
log4j.additivity.kafka.controller=false
log4j.logger.state.change.logger=TRACE, sc
log4j.additivity.state.change.logger=false
log4j.logger.kafka.request.logger=TRACE, req
log4j.additivity.kafka.request.logger=false
"""


def version_of(release: str) -> tuple[int, ...]:
    return tuple(int(x) for x in release.split(".")[:3])


class BrokerSettings(Protocol):
    """What a broker takes from the run that starts it."""

    scenario: Mapping[str, Any]
    release: str
    java: str
    libs: str
    work: Path
    zk_port: int
    session_ms: int


class Broker:
    def __init__(self, run: BrokerSettings, ident: int) -> None:
        self.run, self.id, self.stopped, self.ended = run, ident, False, False
        self.proc: subprocess.Popen[bytes] | None = None
        self.home = run.work / f"broker-{ident}"
        self.home.mkdir()
        (self.home / "log").mkdir()
        self.port = free_port()
        self.marks: dict[str, int] = {}

    def start(self) -> None:
        run, v = self.run, version_of(self.run.release)
        props: dict[str, Any] = {
            "broker.id": self.id, "log.dirs": self.home / "data", "zookeeper.connect": f"{HOST}:{run.zk_port}",
            "zookeeper.session.timeout.ms": run.session_ms, "zookeeper.connection.timeout.ms": 15000,
            "controlled.shutdown.enable": "true", "auto.leader.rebalance.enable": "false", "auto.create.topics.enable": "false",
            "default.replication.factor": 1, "num.partitions": 1, "num.network.threads": 2, "num.io.threads": 2,
            "log.cleaner.enable": "false",
        }  # fmt: skip
        if v < (0, 9):
            props.update({"port": self.port, "host.name": HOST})
        else:
            props.update({"listeners": f"PLAINTEXT://{HOST}:{self.port}", "log.cleaner.dedupe.buffer.size": 10000000})
        if v >= (0, 8, 1):
            props["delete.topic.enable"] = "true"
        else:
            props.pop("auto.leader.rebalance.enable")
        if v >= (0, 8, 2) and run.scenario.get("unclean") is not None:
            props["unclean.leader.election.enable"] = str(bool(run.scenario["unclean"])).lower()
        if v < (0, 8, 1):
            props.pop("log.cleaner.enable")
        props.update((run.scenario.get("settings") or {}).get(self.id, {}))
        config = self.home / "server.properties"
        config.write_text("".join(f"{k}={x}\n" for k, x in props.items()))
        command = [
            run.java, "-Xmx200m", *JVM, *OPENS, f"-Dklog={self.home}/log",
            f"-Dlog4j.configuration=file:{run.work}/log4j.properties", "-cp", run.libs, "kafka.Kafka", str(config),
        ]  # fmt: skip
        with (self.home / "out").open("ab") as out:
            self.proc = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd=self.home
            )
        self.stopped = self.ended = False

    def alive(self) -> bool:
        return self.proc is not None and self.proc.poll() is None

    def signal(self, number: int) -> None:
        if self.proc and self.alive():
            self.proc.send_signal(number)

    def reap(self) -> None:
        if self.proc and self.alive():
            self.proc.send_signal(signal.SIGCONT)
            self.proc.kill()
            self.proc.wait()

    def fresh_lines(self, name: str) -> list[tuple[str, str, str]]:
        """Complete lines added to one of the broker's logs since the last call."""
        path = self.home / "log" / name
        if not path.exists():
            return []
        with path.open("rb") as f:
            f.seek(self.marks.get(name, 0))
            raw = f.read()
        end = raw.rfind(b"\n") + 1
        self.marks[name] = self.marks.get(name, 0) + end
        lines = []
        for line in raw[:end].decode("utf-8", "replace").splitlines():
            m = STAMP.match(line)
            if m:
                lines.append((m.group(1), m.group(3), m.group(4)))
        return lines

    def size(self) -> int:
        total = 0
        for name in ("controller.log", "state-change.log"):
            path = self.home / "log" / name
            total += path.stat().st_size if path.exists() else 0
        return total


def free_port() -> int:
    while True:
        port = random.randrange(15000, 30000)
        with socket.socket() as s:
            try:
                s.bind((HOST, port))
            except OSError:
                continue
        return port


def class_path(folder: str) -> str:
    return os.pathsep.join(f"{part}/*" for part in folder.split(os.pathsep))
