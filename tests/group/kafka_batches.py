"""Batches of records that Kafka's own classes write (MemoryRecords of 2.8.2, by `batch_bytes/Batches.java`)."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.kafka_jars import jars, jdk_tool

JAVA = Path(__file__).parent / "batch_bytes" / "Batches.java"
KeyAndValue = tuple[bytes, bytes | None]


def kafka_batches(batches: Sequence[Sequence[KeyAndValue]], codec: str, formats: str) -> dict[str, list[bytes]]:
    """Return the bytes of each batch by format, one digit each of `formats`; `codec` is a CompressionType such as "GZIP"."""
    lines = (" ".join(f"{key.hex()}:{'-' if value is None else value.hex()}" for key, value in batch) for batch in batches)
    command = [jdk_tool("java"), "-cp", f"{jars('2.8.2')}/*", str(JAVA), codec, *formats]
    said = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=120, check=True).stdout.split()
    found = [bytes.fromhex(text) for text in said]
    assert len(found) == len(batches) * len(formats)
    return {name: found[n :: len(formats)] for n, name in enumerate(formats)}
