"""Wait until a cluster is quiet: nothing moves any more, and nothing obvious is outstanding."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.oracle.broker import Broker, version_of
from tests.oracle.transaction_log import TxnLog


class OutOfTime(Exception):
    """A scenario takes longer than it may."""


class Watching:
    """What a run can see of its cluster; a subclass has `log`, `brokers`, `release`, `quiet_s` and `deadline`."""

    log: TxnLog
    brokers: dict[int, Broker]
    release: str
    quiet_s: float
    deadline: float

    def data(self, path: str) -> Any:
        node = self.log.tree.get(path)
        if not node or not node["raw"]:
            return None
        try:
            return json.loads(node["raw"])
        except ValueError:
            return node["raw"].decode()

    def owner_of(self, path: str) -> Any:
        self.log.poll()
        node = self.log.tree.get(path)
        return node["owner"] if node else None

    def running(self, ident: Any) -> bool:
        b = self.brokers.get(ident)
        return bool(b and b.alive() and not b.stopped and f"/brokers/ids/{ident}" in self.log.tree)

    def pending(self) -> list[str]:
        """Reasons to expect more to happen without being asked to."""
        why = []
        tree = self.log.tree
        for path in list(tree):
            m = re.fullmatch(r"/brokers/topics/([^/]+)/partitions/(\d+)/state", path)
            if not m:
                continue
            state, topic = self.data(path), self.data(f"/brokers/topics/{m.group(1)}")
            if not state or not topic or f"/admin/delete_topics/{m.group(1)}" in tree:
                continue
            replicas = topic["partitions"].get(m.group(2), [])
            if self.running(state["leader"]) and any(self.running(r) and r not in state["isr"] for r in replicas):
                why.append("isr")
            if state["leader"] == -1 and any(self.running(r) and r in state["isr"] for r in replicas):
                why.append("leader")
        for path in tree:
            m = re.fullmatch(r"/admin/delete_topics/(.+)", path)
            if m:
                topic = self.data(f"/brokers/topics/{m.group(1)}")
                if not topic or all(self.running(r) for rs in topic["partitions"].values() for r in rs):
                    why.append("delete")
        for entry in (self.data("/admin/reassign_partitions") or {}).get("partitions", []):
            if all(self.running(r) for r in entry["replicas"]):
                why.append("reassign")
        if "/admin/preferred_replica_election" in tree:
            why.append("prefer")
        if any(self.running(b) for b in self.brokers) and "/controller" not in tree:
            why.append("controller")
        if any(p.startswith("/isr_change_notification/") for p in tree):
            why.append("isr notification")
        if self.unannounced():
            why.append("isr announcement")
        return why

    def unannounced(self) -> set[int]:
        """Leaders that changed an ISR and have not written an ISR notification yet (0.9.0 to 2.6)."""
        v = version_of(self.release)
        if not (0, 9) <= v < (2, 7):
            return set()
        waiting = set[int]()
        for e in self.log.entries:
            for o in e["ops"]:
                path = o.get("path", "")
                if o["op"] == "set" and path.endswith("/state") and o.get("before"):
                    try:
                        old, new = json.loads(o["before"]), json.loads(o["raw"])
                    except ValueError:
                        continue
                    if old["leader_epoch"] == new["leader_epoch"] and old["isr"] != new["isr"]:
                        waiting.add(e["session"])
                elif (o["op"] == "create" and path.startswith("/isr_change_notification/")) or o["op"] == "close":
                    waiting.discard(e["session"])
        return {s for s in waiting if self.running(self.log.owner.get(s))}

    def quiet(self, seconds: float | None = None, patience: float = 10) -> list[str]:
        seconds = seconds or self.quiet_s
        began = last = time.time()
        sizes = None
        while True:
            self.check_time()
            time.sleep(0.1)
            fresh = self.log.poll()
            now_sizes = [b.size() for b in self.brokers.values()]
            now = time.time()
            if fresh or now_sizes != sizes:
                last, sizes = now, now_sizes
            if now - last >= seconds:
                why = self.pending()
                slow = 70 if "isr announcement" in why else patience
                if not why or now - last >= slow:
                    return why
            if now - began > 120:
                return ["not quiet"]

    def check_time(self) -> None:
        if time.monotonic() > self.deadline:
            raise OutOfTime("the scenario took too long, so it was stopped")

    def until(self, test: Callable[[], object], seconds: float, what: str) -> bool:
        deadline = time.time() + seconds
        while time.time() < deadline:
            self.check_time()
            self.log.poll()
            if test():
                return True
            time.sleep(0.02)
        print(f"  gave up waiting for {what}", file=sys.stderr)
        return False
