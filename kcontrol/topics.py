"""Topics as Kafka's tools see them: which names are legal, and where replicas are placed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kcontrol.releases import pick

LONGEST_NAME = (("0.8.0", 255), ("0.10.0", 249))  # KAFKA-3219: a log directory's name also has the partition's number
REFUSES_COLLISIONS = (("0.8.0", False), ("0.9.0", True))
LEGAL_CHARACTERS = "a to z, A to Z, 0 to 9, '.', '_' and '-'"

INVALID_FACTOR = (("0.8.0", "AdministrationException"), ("0.8.1", "AdminOperationException"),
                  ("0.10.1", "InvalidReplicationFactorException"))  # fmt: skip
INVALID_PARTITIONS = (*INVALID_FACTOR[:2], ("0.10.1", "InvalidPartitionsException"))


class Refused(ValueError):
    """Kafka's tool refuses a topic, with this exception's text."""


def check_name(name: object, others: Iterable[str], release: str) -> str:
    """Return the name if a topic may have it beside these others. Raises Refused.

    Source: Topic.validate (0.8.0 on), AdminUtils.createOrUpdateTopicPartitionAssignmentPathInZK (0.9.0), AdminZkClient (2.8).
    """
    longest = pick(LONGEST_NAME, release)
    if not isinstance(name, str) or not name:
        raise Refused(f"a topic's name is text of 1 to {longest} characters out of {LEGAL_CHARACTERS}, not {name!r}")
    if name in (".", ".."):
        raise Refused(f"a topic cannot be called {name!r}")
    if len(name) > longest:
        raise Refused(f"a topic's name has at most {longest} characters in Kafka {release}, and this one has {len(name)}")
    if wrong := re.search(r"[^a-zA-Z0-9._-]", name):
        raise Refused(f"a topic's name has no {wrong[0]!a} in it; its characters are {LEGAL_CHARACTERS}")
    alike = [other for other in others if other != name and other.replace(".", "_") == name.replace(".", "_")]
    if alike and pick(REFUSES_COLLISIONS, release):
        raise Refused(f"{name} and {alike[0]} differ only in '.' and '_', which the names of metrics do not tell apart")
    return name


# ---------------------------------------------------------------- placement


def assign_replicas(
    brokers: Sequence[int], partitions: int, replication_factor: int, start: int, shift: int
) -> tuple[tuple[int, ...], ...]:
    """Return the replicas of each partition, the preferred leader first; `brokers` are in ascending order, without racks.

    The first replicas go round the brokers from position `start` on. Each following replica is placed `shift` positions further
    than the one before, and `shift` grows by one with each round. Kafka draws both at random.

    Source: AdminUtils.assignReplicasToBrokers (0.8.0 to 3.9).
    """
    size = len(brokers)
    found = []
    for partition in range(partitions):
        first, round_shift = (start + partition) % size, shift + partition // size
        further = (1 + (round_shift + i) % (size - 1) for i in range(replication_factor - 1))
        found.append((brokers[first], *(brokers[(first + distance) % size] for distance in further)))
    return tuple(found)


def check_counts(partitions: object, replication_factor: object, brokers: int, release: str) -> tuple[int, int]:
    """Return both counts if that many brokers can hold such a topic. Raises Refused. Source: AdminUtils (0.8.0 to 3.9)."""
    if not _is_positive(partitions):
        raise Refused(
            f"the count of partitions is a whole number from 1 on, not {partitions!r}{_as(INVALID_PARTITIONS, release)}"
        )
    if not _is_positive(replication_factor):
        raise Refused(
            f"the replication factor is a whole number from 1 on, not {replication_factor!r}{_as(INVALID_FACTOR, release)}"
        )
    if replication_factor > brokers:  # type: ignore[operator]
        raise Refused(
            f"the replication factor {replication_factor} is larger than the number of brokers that are registered, which is "
            f"{brokers}{_as(INVALID_FACTOR, release)}"
        )
    return partitions, replication_factor  # type: ignore[return-value]


def _is_positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _as(names: Sequence[tuple[str, str]], release: str) -> str:
    return f" (Kafka's {pick(names, release)})"
