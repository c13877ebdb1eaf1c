"""Bytes of subscriptions and assignments against Kafka's own client: `read_0_9_0_1.txt` and `read_2_8_2.txt` are its answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcontrol.cluster import consumer_protocol

FOLDER = Path(__file__).parent / "client_bytes"
RELEASES = ("0_9_0_1", "2_8_2")
THROWN = {"SchemaException", "RuntimeException", "IllegalArgumentException"}


def read(kind: str, data: bytes) -> str | None:
    """Return the topics or the partitions that our client reads, as Java prints a list; None if it cannot read the bytes."""
    try:
        is_subscription = kind == "subscription"
        found = (
            consumer_protocol.read_subscription(data, "range").topics if is_subscription else consumer_protocol.partitions(data)
        )
    except ValueError:
        return None
    return f"[{', '.join(map(str, found))}]" if data else None


@pytest.mark.parametrize("release", RELEASES)
def test_bytes_are_read_as_kafkas_client_reads_them(release: str) -> None:
    """We read the entries that Kafka's client reads, and cannot read the bytes on which Kafka's client throws."""
    # Source: deserializeSubscription and deserializeAssignment of ConsumerProtocol.java, run by `client_bytes/Parse.java`.
    lines = (FOLDER / f"read_{release}.txt").read_text(encoding="utf-8").split("\n")[:-1]
    answers = [line.split(" ", 2) for line in lines]
    assert {kind for kind, *_ in answers} == {"subscription", "assignment"}
    assert len([answer for *_, answer in answers if answer in THROWN]) >= 80
    expected = {(kind, data): None if answer in THROWN else answer for kind, data, answer in answers}
    ours = {(kind, data): read(kind, bytes.fromhex(data)) for kind, data in expected}
    assert {asked: (found, expected[asked]) for asked, found in ours.items() if found != expected[asked]} == {}
