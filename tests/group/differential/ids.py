"""Member ids whose place in the hash map of a release's Scala is known: the id of number n is walked as number n.

Kafka walks its members in the order of a hash map, and that order decides who leads next.
Source: scala.collection.mutable.HashMap of Scala 2.13 (2.8) and scala.collection.mutable.HashTable of Scala 2.11 (0.9).
"""

from __future__ import annotations

from itertools import count

from kcontrol.core.java_hash import java_hash

MASK = 0xFFFF_FFFF
LETTERS, FIRST_LETTER = 31, ord("A")  # the base of Java's hash of a string, so that each hash has a spelling
LENGTH = 7
BUCKETS = 16


def suffix_2_8(prefix: str, number: int) -> str:
    """Return what makes `prefix` hash to number << 20: bucket 0 of Scala 2.13's map, whose chains ascend by hash."""
    rest = (number << 20) - java_hash(prefix) * LETTERS**LENGTH - sum(FIRST_LETTER * LETTERS**power for power in range(LENGTH))
    rest &= MASK
    letters = []
    for _ in range(LENGTH):
        rest, letter = divmod(rest, LETTERS)
        letters.append(chr(FIRST_LETTER + letter))
    return "".join(reversed(letters))


def bucket_0_9(text: str) -> int:
    """Return the bucket of a string in a map of 16 buckets of Scala 2.11. Source: HashTable.index, byteswap32."""
    value = (java_hash(text) * 0x9E37_75CD) & MASK
    value = int.from_bytes(value.to_bytes(4, "big"), "little")
    value = (value * 0x9E37_75CD) & MASK
    rotation = (BUCKETS - 1).bit_count()
    value = ((value >> rotation) | (value << (32 - rotation))) & MASK
    return value >> 28


def suffix_0_9(prefix: str, number: int) -> str:
    """Return what puts `prefix` into bucket 15 - number of Scala 2.11's map, which is walked from its last bucket."""
    tries = (f"{number:02d}{attempt:05d}" for attempt in count())
    return next(suffix for suffix in tries if bucket_0_9(prefix + suffix) == BUCKETS - 1 - number % BUCKETS)


def suffix(release: str, prefix: str, number: int) -> str:
    """Return what a member id with this prefix ends with, so that the release walks it as number `number`, from 0."""
    return suffix_0_9(prefix, number) if release.startswith("0.9") else suffix_2_8(prefix, number + 1)
