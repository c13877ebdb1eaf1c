"""Checks names, numbers of partitions and replication factors of new topics as Kafka's tools do, and assigns their replicas."""

import random
import re
from collections.abc import Iterable, Sequence

from kcontrol.core.releases import value_in_force

# KAFKA-3219: a log directory's name also has the partition's number
MAX_NAME_LENGTH = (("0.8.0", 255), ("0.10.0", 249))
REFUSES_COLLISIONS = (("0.8.0", False), ("0.9.0", True))
LEGAL_CHARACTERS = "a to z, A to Z, 0 to 9, '.', '_' and '-'"

INVALID_FACTOR = (("0.8.0", "AdministrationException"), ("0.8.1", "AdminOperationException"),
                  ("0.10.1", "InvalidReplicationFactorException"))  # fmt: skip
INVALID_PARTITIONS = (*INVALID_FACTOR[:2], ("0.10.1", "InvalidPartitionsException"))


class TopicRefused(ValueError):
    """The error for a topic that Kafka's tool refuses; its text is the reason."""


def check_name(name: object, existing_names: Iterable[str], release: str) -> str:
    """Return `name` if a new topic may have this name beside the topics `existing_names`.

    Raises TopicRefused for a wrong length or character and, since 0.9, for a name that differs from another only in "." and "_".

    Source: Topic.validate (0.8.0 on), AdminUtils.createOrUpdateTopicPartitionAssignmentPathInZK (0.9.0), AdminZkClient (2.8).
    """
    longest = value_in_force(MAX_NAME_LENGTH, release)
    if not isinstance(name, str) or not name:
        legal = f"text of 1 to {longest} characters out of {LEGAL_CHARACTERS}"
        raise TopicRefused(f"a topic's name is {legal}, not {name!r}")
    if name in (".", ".."):
        raise TopicRefused(f"a topic cannot be called {name!r}")
    if len(name) > longest:
        most = f"at most {longest} characters in Kafka {release}"
        raise TopicRefused(f"a topic's name has {most}, not {len(name)}")
    if wrong := re.search(r"[^a-zA-Z0-9._-]", name):
        legal = f"its characters are {LEGAL_CHARACTERS}"
        raise TopicRefused(f"a topic's name cannot contain {wrong[0]!a}; {legal}")
    metric = name.replace(".", "_")
    alike = [other for other in existing_names if other != name and other.replace(".", "_") == metric]
    if alike and value_in_force(REFUSES_COLLISIONS, release):
        reason = "differ only in '.' and '_', which metric names do not distinguish"
        raise TopicRefused(f"{name} and {alike[0]} {reason}")
    return name


# ---------------------------------------------------------------- placement


def assign_replicas(
    brokers: Sequence[int], partitions: int, replication_factor: int, start: int, shift: int
) -> tuple[tuple[int, ...], ...]:
    """Return the replicas of each partition, preferred leader first: round robin over the ascending `brokers`.

    `start` is the position in `brokers` of partition 0's first replica; `shift` brokers are skipped before its second replica.

    Source: AdminUtils.assignReplicasToBrokers (0.8.0 to 3.9).
    """
    # Kafka draws `start` and `shift` at random. Racks are not considered.
    size = len(brokers)
    found = []
    for partition in range(partitions):
        # The first replica of the next partition is on the next broker. After each round of partitions through the
        # brokers one more broker is skipped.
        first, round_shift = (start + partition) % size, shift + partition // size
        further = (1 + (round_shift + i) % (size - 1) for i in range(replication_factor - 1))
        found.append((brokers[first], *(brokers[(first + step) % size] for step in further)))
    return tuple(found)


def draw_replicas(
    seed: object, topic: str, brokers: Sequence[int], partitions: int, replication_factor: int
) -> tuple[tuple[int, ...], ...]:
    """Start and shift of `assign_replicas` follow from the run's seed and the topic's name."""
    chance = random.Random(f"{seed}/topic/{topic}")
    drawn = chance.randrange(len(brokers)), chance.randrange(len(brokers))
    return assign_replicas(brokers, partitions, replication_factor, *drawn)


def check_counts(partitions: object, replication_factor: object, brokers: int, release: str) -> tuple[int, int]:
    """Return (partitions, replication_factor) if both are legal for a cluster with `brokers` registered brokers.

    Raises TopicRefused, with the error of this release, for a count below 1 and for a factor above `brokers`.

    Source: AdminUtils (0.8.0 to 3.9).
    """
    legal, kafka = "is a whole number from 1 on, not", _as(INVALID_FACTOR, release)
    if not _is_positive(partitions):
        raise TopicRefused(f"the number of partitions {legal} {partitions!r}{_as(INVALID_PARTITIONS, release)}")
    if not _is_positive(replication_factor):
        raise TopicRefused(f"the replication factor {legal} {replication_factor!r}{kafka}")
    if replication_factor > brokers:  # type: ignore[operator]
        larger = "is larger than the number of registered brokers"
        raise TopicRefused(f"the replication factor {replication_factor} {larger}, {brokers}{kafka}")
    return partitions, replication_factor  # type: ignore[return-value]


def _is_positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _as(names: Sequence[tuple[str, str]], release: str) -> str:
    return f" (Kafka's {value_in_force(names, release)})"
