"""The ids of topics, which Kafka draws at random and a run must repeat."""

from __future__ import annotations

import base64
import hashlib


def of(topic: str) -> str:
    """Derived from the name as in the recordings of real brokers: unpadded urlsafe base64 of `k` and md5's last 15 bytes."""
    digest = hashlib.md5(topic.encode(), usedforsecurity=False).digest()
    return base64.urlsafe_b64encode(b"k" + digest[1:]).rstrip(b"=").decode()
