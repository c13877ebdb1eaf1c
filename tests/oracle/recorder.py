"""Record what official brokers of a release do in a scenario: `record(scenario, release)` is a recording.

One ZooKeeper 3.5.9 and the brokers run as processes on 127.0.0.1. Writes are read from ZooKeeper's transaction log,
transitions from state-change.log, requests from the request log of the broker that receives them.
"""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from kcontrol.core.errors import UserError
from tests.kafka_jars import jars
from tests.oracle.broker import HOST, JVM, LOG4J, Broker, class_path, free_port
from tests.oracle.request_log import requests_of
from tests.oracle.state_change_log import transition
from tests.oracle.steps import Steps
from tests.oracle.transaction_log import TxnLog, decoded

ZOOKEEPER = "2.8.2"  # the release whose jars hold ZooKeeper 3.5.9, whatever release the brokers are of
LONGEST_S = 420
QUIET_S = 1.5  # without a new transaction or log line: a step has ended


logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # a lost connection is tried again, and then is an error of ours


def java() -> str:
    """Return the Java on PATH, which Maven needs too. Raises UserError where there is none."""
    found = shutil.which("java")
    if found is None:
        raise UserError("The official brokers need a Java, and none is on PATH: install Java 17.")
    return found


class Run(Steps):
    def __init__(self, scenario: Mapping[str, Any], release: str) -> None:
        self.scenario, self.release, self.java = scenario, release, java()
        self.libs, self.answers = class_path(str(jars(release))), {}
        self.deadline = time.monotonic() + LONGEST_S
        self.session_ms = scenario.get("session_timeout_ms", 3000)
        self.work = Path(tempfile.mkdtemp(prefix="oracle-"))
        self.zk: subprocess.Popen[bytes] | None = None
        self.brokers = {}
        self.quiet_s = QUIET_S
        (self.work / "log4j.properties").write_text(LOG4J)
        self.zk_port = free_port()
        try:
            self.prepare()
        except BaseException:
            self.close()
            raise

    def prepare(self) -> None:
        self.start_zookeeper(class_path(str(jars(ZOOKEEPER))))
        self.log = TxnLog(self.work / "zk")
        for attempt in range(4):
            self.tool = KazooClient(hosts=f"{HOST}:{self.zk_port}", timeout=30)
            try:
                self.tool.start(timeout=12)
                break
            except self.tool.handler.timeout_exception:
                self.tool.stop()
                if attempt == 3:
                    raise
        self.tools = {self.tool.client_id[0]}
        self.brokers = {b: Broker(self, b) for b in self.scenario["brokers"]}

    def start_zookeeper(self, libs: str) -> None:
        home = self.work / "zk"
        home.mkdir()
        config = self.work / "zk.cfg"
        config.write_text(
            f"tickTime=500\ndataDir={home}\nclientPort={self.zk_port}\nclientPortAddress={HOST}\n"
            "minSessionTimeout=1000\nmaxSessionTimeout=120000\nadmin.enableServer=false\nsnapCount=1000000\n"
        )
        (self.work / "zklog.properties").write_text(
            "log4j.rootLogger=WARN, out\nlog4j.appender.out=org.apache.log4j.FileAppender\n"
            f"log4j.appender.out.File={self.work}/zk.log\n"
            "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n\n"
        )
        with (self.work / "zk.out").open("wb") as out:
            self.zk = subprocess.Popen(
                [
                    self.java, "-Xmx200m", *JVM, "-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=4096",
                    f"-Dlog4j.configuration=file:{self.work}/zklog.properties", "-cp", libs,
                    "org.apache.zookeeper.server.ZooKeeperServerMain", str(config),
                ],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                cwd=self.work,
            )  # fmt: skip
        deadline = time.time() + 30
        while time.time() < deadline:
            try:
                socket.create_connection((HOST, self.zk_port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("ZooKeeper did not start")

    def java_version(self) -> str:
        return subprocess.run([self.java, "-version"], capture_output=True, text=True, check=False).stderr.splitlines()[0]

    def close(self) -> None:
        for b in self.brokers.values():
            b.reap()
        if tool := getattr(self, "tool", None):  # a recording that fails early has none
            with contextlib.suppress(KazooException):  # the server may have ended before
                tool.stop()
                tool.close()
        if self.zk and self.zk.poll() is None:
            self.zk.kill()
            self.zk.wait()
        shutil.rmtree(self.work, ignore_errors=True)

    # ---- writing down
    def name(self, session: int) -> int | str:
        if session in self.tools:
            return "tool"
        return self.log.owner.get(session, "unnamed")

    def writes(self, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        out, group = list[dict[str, Any]](), 0
        for e in entries:
            if e["multi"]:
                group += 1
            checks = {o["path"]: o["version"] for o in e["ops"] if o["op"] == "check"}
            if e.get("failed"):
                out.append({"by": self.name(e["session"]), "op": "rejected", "codes": [o.get("code") for o in e["ops"]]})
                continue
            for o in e["ops"]:
                if o["op"] == "check":
                    continue
                w: dict[str, Any] = {"by": self.name(e["session"]), "op": o["op"]}
                if "path" in o:
                    w["path"] = o["path"]
                if "raw" in o:
                    w["data"] = decoded(o["path"], o["raw"])
                if o["op"] == "set":
                    w["version"] = o["version"]
                if o["op"] == "create":
                    w["ephemeral"] = o["ephemeral"]
                if o["op"] == "close":
                    w["deleted"] = o["deleted"]
                if e["multi"]:
                    w["multi"] = group
                    if checks:
                        w["checked"] = checks
                out.append(w)
        return out

    def znodes(self) -> dict[str, dict[str, Any]]:
        out = {}
        for path in sorted(self.log.tree):
            if path.startswith("/zookeeper"):
                continue
            n = self.log.tree[path]
            out[path] = {"data": decoded(path, n["raw"]), "version": n["version"], "ephemeral_owner": n["owner"] and n["owner"]}
        return out

    def check_tree(self) -> None:
        """The replayed tree must be what the server itself shows."""
        self.log.poll()
        seen, todo = {}, ["/"]
        while todo:
            path = todo.pop()
            if path != "/":
                raw, stat = self.tool.get(path)
                seen[path] = (raw or b"", stat.version, stat.ephemeralOwner or 0)
            todo += [f"{path.rstrip('/')}/{c}" for c in self.tool.get_children(path)]
        mine = {p: (n["raw"] or b"", n["version"], n["owner"]) for p, n in self.log.tree.items()}
        seen = {p: x for p, x in seen.items() if not p.startswith("/zookeeper")}
        mine = {p: x for p, x in mine.items() if not p.startswith("/zookeeper")}
        if seen != mine:
            odd = sorted(p for p in set(seen) | set(mine) if seen.get(p) != mine.get(p))
            raise RuntimeError(f"replayed tree differs from the server's at {odd}")

    def perform(self) -> list[dict[str, Any]]:
        results, at = [], 0
        self.log.poll()
        at = len(self.log.entries)
        for step in self.scenario["steps"]:
            self.do(step)
            left = self.quiet(step.get("quiet"), step.get("patience", 10))
            entries = self.log.entries[at:]
            at = len(self.log.entries)
            moves, requests = [], []
            for b in self.brokers.values():
                for stamp, message, _ in b.fresh_lines("state-change.log"):
                    t = transition(message)
                    if t:
                        moves.append((stamp, t))
                requests += requests_of(b.id, b.fresh_lines("request.log"))
            moves.sort(key=lambda x: x[0])
            for _, t in moves:
                if t["epoch"] < 0:  # 1.0 leaves the epoch out of one message
                    t["epoch"] = int(self.log.tree["/controller_epoch"]["raw"])
            requests.sort(key=lambda x: x[0])
            exited = {
                str(b.id): b.proc.returncode
                for b in self.brokers.values()
                if b.proc and b.proc.poll() is not None and not b.ended
            }
            for b in self.brokers.values():
                b.ended = b.ended or (b.proc is not None and b.proc.poll() is not None)
            results.append((step, entries, [m for _, m in moves], [r for _, r in requests], self.znodes(), left, exited))
        self.check_tree()
        steps = []
        for step, entries, moved, asked, znodes, left, exited in results:
            for n in znodes.values():
                if n["ephemeral_owner"]:
                    n["ephemeral_owner"] = self.name(n["ephemeral_owner"])
                else:
                    n["ephemeral_owner"] = None
            s = {"do": step, "writes": self.writes(entries), "transitions": moved, "requests": asked, "znodes": znodes}
            if left:
                s["left"] = sorted(set(left))
            if exited:
                s["exited"] = exited
            if "api-reassign" in step:
                s["answer"] = self.answers[id(step["api-reassign"])]
            steps.append(s)
        return steps


def record(scenario: Mapping[str, Any], release: str) -> dict[str, Any]:
    """A scenario's recording; nothing runs on afterwards. Raises OutOfTime after LONGEST_S, JarsMissing without brokers."""
    run = Run(scenario, release)
    try:
        steps = run.perform()
    finally:
        run.close()
    head = {"release": release, "scenario": scenario["name"], "brokers": scenario["brokers"], "java": run.java_version()}
    whole = {**head, "session_timeout_ms": run.session_ms, "unclean": scenario.get("unclean"), "steps": steps}
    recording: dict[str, Any] = json.loads(json.dumps(whole))
    return recording
