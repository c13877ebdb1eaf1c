"""Computes the ids of topics. Kafka draws them at random; a run derives them from the name, so that it can be repeated."""

from __future__ import annotations

import base64
import hashlib


def topic_id(topic: str) -> str:
    """Return the id of a topic: unpadded urlsafe base64 of the letter k and the last 15 bytes of the md5 of the topic's name.

    In the recordings of Kafka's own controller the topics were created with the same ids.
    """
    digest = hashlib.md5(topic.encode(), usedforsecurity=False).digest()
    return base64.urlsafe_b64encode(b"k" + digest[1:]).rstrip(b"=").decode()
