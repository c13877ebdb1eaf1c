"""Follow the transaction log of a running ZooKeeper server and replay it into a tree."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any


class Jute:
    """Reader for the record encoding of ZooKeeper's transaction log."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def take(self, fmt: str) -> Any:
        (value,) = struct.unpack_from(">" + fmt, self.raw, self.at)
        self.at += struct.calcsize(fmt)
        return value

    def buffer(self) -> bytes | None:
        n = self.take("i")
        if n < 0:
            return None
        part = self.raw[self.at : self.at + n]
        self.at += n
        return part

    def text(self) -> str | None:
        part = self.buffer()
        return None if part is None else part.decode()


CREATES = {1, 15, 19, 21}
DELETES = {2, 20}


def decode_txn(kind: int, raw: bytes) -> list[dict[str, Any]]:
    """Return a list of primitive operations for one transaction body."""
    j = Jute(raw)
    if kind == -10:
        return [{"op": "open"}]
    if kind == -11:
        return [{"op": "close"}]
    if kind in CREATES:
        path, data = j.text(), j.buffer()
        for _ in range(max(j.take("i"), 0)):
            j.take("i")
            j.text()
            j.text()
        ephemeral = bool(j.take("b")) if kind in (1, 15) else False
        return [{"op": "create", "path": path, "raw": data, "ephemeral": ephemeral}]
    if kind in DELETES:
        return [{"op": "delete", "path": j.text()}]
    if kind == 5:
        path, data = j.text(), j.buffer()
        return [{"op": "set", "path": path, "raw": data, "version": j.take("i")}]
    if kind == 13:
        return [{"op": "check", "path": j.text(), "version": j.take("i")}]
    if kind == 14:
        ops: list[dict[str, Any]] = []
        for _ in range(max(j.take("i"), 0)):
            sub = j.take("i")
            ops += decode_txn(sub, j.buffer() or b"")
        return ops
    if kind == -1:
        return [{"op": "error", "code": j.take("i")}]
    return [{"op": "other", "type": kind}]


class TxnLog:
    """Follows the transaction log of a running server and replays it into a tree."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.offset = folder, 16
        self.entries: list[dict[str, Any]] = []
        self.tree: dict[str, dict[str, Any]] = {}
        self.owner: dict[int, int] = {}

    def poll(self) -> int:
        files = sorted(self.folder.glob("version-2/log.*"))
        if not files:
            return 0
        if len(files) > 1:
            raise RuntimeError("the transaction log was rolled; raise snapCount")
        with files[0].open("rb") as f:
            f.seek(self.offset)
            raw = f.read()
        at, fresh = 0, 0
        while at + 12 <= len(raw):
            _, size = struct.unpack_from(">qi", raw, at)
            if size <= 0 or at + 12 + size + 1 > len(raw) or raw[at + 12 + size] != 0x42:
                break
            body = raw[at + 12 : at + 12 + size]
            session, _, zxid, stamp, kind = struct.unpack_from(">qiqqi", body)
            ops = decode_txn(kind, body[32:])
            self.apply(session, zxid, kind, ops, stamp)
            at += 12 + size + 1
            fresh += 1
        self.offset += at
        return fresh

    def apply(self, session: int, zxid: int, kind: int, ops: list[dict[str, Any]], stamp: int) -> None:
        if any(o["op"] == "error" for o in ops):
            if kind == 14:
                self.entries.append({"session": session, "zxid": zxid, "ms": stamp, "multi": True, "failed": True, "ops": ops})
            return
        for o in ops:
            if o["op"] == "create":
                self.tree[o["path"]] = {"raw": o["raw"], "version": 0, "owner": session if o["ephemeral"] else 0}
                m = re.fullmatch(r"/brokers/ids/(\d+)", o["path"])
                if m:
                    self.owner[session] = int(m.group(1))
            elif o["op"] == "set":
                o["before"] = self.tree[o["path"]]["raw"]
                self.tree[o["path"]].update(raw=o["raw"], version=o["version"])
            elif o["op"] == "delete":
                self.tree.pop(o["path"], None)
            elif o["op"] == "close":
                gone = sorted(p for p, n in self.tree.items() if n["owner"] == session)
                o["deleted"] = gone
                for p in gone:
                    del self.tree[p]
        self.entries.append({"session": session, "zxid": zxid, "ms": stamp, "multi": kind == 14, "ops": ops})


def masked(value: Any, key: str | None = None) -> Any:
    if isinstance(value, dict):
        return {k: masked(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [masked(v, key) for v in value]
    if key == "timestamp":
        return "<ms>"
    if key == "port" and isinstance(value, int) and value > 0:
        return "<port>"
    if key == "endpoints":
        return re.sub(r":\d+$", ":<port>", value)
    return value


def decoded(path: str, raw: bytes | None) -> Any:
    if not raw:
        return None
    text = raw.decode("utf-8", "replace")
    if text[:1] in "{[":
        try:
            value = masked(json.loads(text))
        except ValueError:
            return text
        if path == "/cluster/id":
            value["id"] = "<id>"
        return value
    return text
