"""Computes the ids of topics. Kafka draws them at random; a run derives them from the name, so that it can be repeated."""

import base64
import hashlib


def topic_id(topic: str) -> str:
    """Return the id of a topic, made from its name: 22 characters of urlsafe base64."""
    digest = hashlib.md5(topic.encode(), usedforsecurity=False).digest()
    # The brokers of the recordings got these ids too.
    return base64.urlsafe_b64encode(b"k" + digest[1:]).rstrip(b"=").decode()
