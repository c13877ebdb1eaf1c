"""Computes the ids of topics. Kafka draws them at random; a run derives them from the name, so that it can be repeated."""

from __future__ import annotations

import base64
import hashlib


def topic_id(topic: str) -> str:
    """Return a topic's id, as in the recordings of Kafka: unpadded urlsafe base64 of `k` and the last 15 bytes of its md5."""
    digest = hashlib.md5(topic.encode(), usedforsecurity=False).digest()
    return base64.urlsafe_b64encode(b"k" + digest[1:]).rstrip(b"=").decode()
