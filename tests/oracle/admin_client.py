"""Ask a controller to move partitions: AlterPartitionReassignments, version 0 (2.4 on)."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from tests.oracle.transaction_log import Jute


def varint(n: int) -> bytes:
    out = b""
    while n > 0x7F:
        out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
    return out + bytes([n])


def text(s: str) -> bytes:
    return varint(len(s.encode()) + 1) + s.encode()


class In(Jute):
    """Reader for the flexible versions of Kafka's protocol, whose numbers are those of Jute."""

    def varint(self) -> int:
        n = shift = 0
        while True:
            b = self.raw[self.at]
            self.at += 1
            n |= (b & 0x7F) << shift
            shift += 7
            if b < 0x80:
                return n

    def text(self) -> str | None:
        n = self.varint() - 1
        if n < 0:
            return None
        self.at += n
        return self.raw[self.at - n : self.at].decode()

    def tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self.at += self.varint()


def alter(host: str, port: int, targets: Mapping[str, Sequence[int] | None]) -> dict[str, Any]:
    topics: dict[str, dict[int, Sequence[int] | None]] = {}
    for tp, replicas in targets.items():
        topic, partition = tp.rsplit("-", 1)
        topics.setdefault(topic, {})[int(partition)] = replicas
    body = struct.pack(">i", 30000) + varint(len(topics) + 1)
    for topic, partitions in topics.items():
        body += text(topic) + varint(len(partitions) + 1)
        for number, replicas in partitions.items():
            body += struct.pack(">i", number)
            body += (
                varint(0) if replicas is None else varint(len(replicas) + 1) + b"".join(struct.pack(">i", r) for r in replicas)
            )
            body += varint(0)
        body += varint(0)
    body += varint(0)
    client = b"tool"
    head = struct.pack(">hhih", 45, 0, 1, len(client)) + client + varint(0)
    with socket.create_connection((host, port), 40) as s:
        s.sendall(struct.pack(">i", len(head + body)) + head + body)
        raw = b""
        while len(raw) < 4 or len(raw) < 4 + struct.unpack(">i", raw[:4])[0]:
            part = s.recv(65536)
            if not part:
                raise RuntimeError("the controller hung up")
            raw += part
    r = In(raw[4:])
    r.take("i")
    r.tags()
    r.take("i")
    answer: dict[str, Any] = {"error": r.take("h")}
    r.text()
    answer["partitions"] = {}
    for _ in range(r.varint() - 1):
        named = r.text()
        for _ in range(r.varint() - 1):
            number, code = r.take("i"), r.take("h")
            r.text()
            r.tags()
            answer["partitions"][f"{named}-{number}"] = code
        r.tags()
    return answer
