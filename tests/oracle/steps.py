"""Do the steps of a scenario to a cluster of official brokers."""

from __future__ import annotations

import base64
import hashlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from kazoo.client import KazooClient

from tests.oracle.admin_client import alter
from tests.oracle.broker import HOST, version_of
from tests.oracle.quiet import Watching


class Steps(Watching):
    """The step words: `do_kill` does `kill`, and waits for its effect if it is asked to."""

    tool: KazooClient
    answers: dict[int, dict[str, Any]]

    def do(self, step: Mapping[str, Any], wait: bool = True) -> None:
        ((name, arg),) = ((k, v) for k, v in step.items() if k not in ("quiet", "patience"))
        getattr(self, "do_" + name.replace("-", "_"))(arg, wait)

    def do_together(self, steps: Sequence[Mapping[str, Any]], wait: bool) -> None:
        for s in steps:
            self.do(s, False)

    def do_start(self, ids: int | list[int], wait: bool) -> None:
        for ident in ids if isinstance(ids, list) else [ids]:
            b, path = self.brokers[ident], f"/brokers/ids/{ident}"
            if b.alive():
                continue
            before = self.owner_of(path)
            b.start()
            if wait:
                self.until(lambda: not b.alive() or self.owner_of(path) not in (None, before), 60, path)  # noqa: B023 - called at once
                if isinstance(ids, list) and ident != ids[-1]:
                    self.quiet(0.7)

    def do_kill(self, ids: int | list[int], wait: bool) -> None:
        ids = ids if isinstance(ids, list) else [ids]
        sessions = [self.owner_of(f"/brokers/ids/{i}") for i in ids]
        for i in ids:
            self.brokers[i].ended = True
            self.brokers[i].signal(signal.SIGKILL)
        for i in ids:
            if process := self.brokers[i].proc:
                process.wait()
        if wait:
            self.until(
                lambda: all(s is None or s not in {n["owner"] for n in self.log.tree.values()} for s in sessions), 60, "expiry"
            )

    def do_term(self, ids: int | list[int], wait: bool) -> None:
        ids = ids if isinstance(ids, list) else [ids]
        for i in ids:
            self.brokers[i].ended = True
            self.brokers[i].signal(signal.SIGTERM)
        if wait:
            for process in [process for i in ids if (process := self.brokers[i].proc)]:
                try:
                    process.wait(90)
                except subprocess.TimeoutExpired:
                    print("  did not stop by itself", file=sys.stderr)

    def do_pause(self, ident: int, wait: bool) -> None:
        b, session = self.brokers[ident], self.owner_of(f"/brokers/ids/{ident}")
        b.signal(signal.SIGSTOP)
        b.stopped = True
        if wait:
            self.until(lambda: session not in {n["owner"] for n in self.log.tree.values()}, 60, "expiry")

    def do_freeze(self, ident: int, wait: bool) -> None:
        """SIGSTOP without waiting for the session to expire (give the broker a long session)."""
        self.do_pause(ident, False)

    def do_resume(self, ident: int, wait: bool) -> None:
        b, path = self.brokers[ident], f"/brokers/ids/{ident}"
        b.signal(signal.SIGCONT)
        b.stopped = False
        if wait:
            self.until(lambda: not b.alive() or self.owner_of(path), 30, f"broker {ident}")

    def do_api_reassign(self, arg: dict[str, Any], wait: bool) -> None:
        self.log.poll()
        controller = int(self.log.owner[self.log.tree["/controller"]["owner"]])
        self.answers[id(arg)] = alter(HOST, self.brokers[controller].port, arg)

    def do_sleep(self, seconds: float, wait: bool) -> None:
        time.sleep(seconds)

    def do_await(self, arg: dict[str, str], wait: bool) -> None:
        ((kind, path),) = arg.items()
        if kind == "gone":
            self.until(lambda: self.owner_of(path) is None, 60, path)
        elif kind == "exists":
            self.until(lambda: self.owner_of(path) is not None, 60, path)
        elif kind == "set":
            self.log.poll()
            start = len(self.log.entries)
            self.until(
                lambda: any(o["op"] == "set" and o["path"] == path for e in self.log.entries[start:] for o in e["ops"]), 60, path
            )
        else:
            raise ValueError(kind)

    def topic_json(self, topic: str, assignment: Mapping[Any, Any]) -> bytes:
        v = version_of(self.release)
        value: dict[str, Any] = {"version": 1, "partitions": {str(p): r for p, r in assignment.items()}}
        if v >= (2, 4):
            value.update(version=2, adding_replicas={}, removing_replicas={})
        if v >= (2, 8):
            digest = hashlib.md5(topic.encode()).digest()
            value.update(version=3, topic_id=base64.urlsafe_b64encode(b"k" + digest[1:]).decode().rstrip("="))
        return json.dumps(value, separators=(",", ":")).encode()

    def do_create(self, arg: dict[str, Any], wait: bool) -> None:
        for topic, assignment in arg.items():
            config: dict[str, Any] = {}
            if "partitions" in assignment:
                config, assignment = assignment.get("config", {}), assignment["partitions"]
            if version_of(self.release) >= (0, 8, 1):
                body = {"version": 1, "config": {k: str(x).lower() for k, x in config.items()}}
                self.tool.create(f"/config/topics/{topic}", json.dumps(body, separators=(",", ":")).encode(), makepath=False)
            self.tool.create(
                f"/brokers/topics/{topic}", self.topic_json(topic, assignment), makepath=version_of(self.release) < (0, 8, 1)
            )

    def do_expand(self, arg: dict[str, Any], wait: bool) -> None:
        for topic, added in arg.items():
            raw, _ = self.tool.get(f"/brokers/topics/{topic}")
            value = json.loads(raw)
            value["partitions"].update({str(p): r for p, r in added.items()})
            self.tool.set(f"/brokers/topics/{topic}", json.dumps(value, separators=(",", ":")).encode())

    def do_delete_topic(self, topics: str | list[str], wait: bool) -> None:
        for topic in topics if isinstance(topics, list) else [topics]:
            self.tool.create(f"/admin/delete_topics/{topic}", b"")

    def admin(self, path: str, entries: list[dict[str, Any]]) -> None:
        self.tool.create(path, json.dumps({"version": 1, "partitions": entries}, separators=(",", ":")).encode(), makepath=True)

    def do_reassign(self, arg: dict[str, Any], wait: bool) -> None:
        self.admin(
            "/admin/reassign_partitions",
            [{"topic": tp.rsplit("-", 1)[0], "partition": int(tp.rsplit("-", 1)[1]), "replicas": r} for tp, r in arg.items()],
        )

    def do_prefer(self, arg: list[str], wait: bool) -> None:
        self.admin(
            "/admin/preferred_replica_election",
            [{"topic": tp.rsplit("-", 1)[0], "partition": int(tp.rsplit("-", 1)[1])} for tp in arg],
        )

    def do_znode_delete(self, path: str, wait: bool) -> None:
        self.tool.delete(path)

    def do_znode_set(self, arg: dict[str, Any], wait: bool) -> None:
        for path, value in arg.items():
            self.tool.set(path, (value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))).encode())
