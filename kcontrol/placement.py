"""Where the replicas of a new topic go when nobody says so.

Source: AdminUtils.assignReplicasToBrokersRackUnaware (0.8.0 to 2.8).
"""

from __future__ import annotations

from collections.abc import Sequence


def assign_replicas(
    broker_ids: Sequence[int], partitions: int, replication_factor: int, start_index: int, shift: int
) -> list[tuple[int, ...]]:
    """The replicas of each partition, first replicas round robin from `start_index`, the others `shift` further apart each round.

    Raises ValueError if there are fewer brokers than replicas.

    >>> assign_replicas([0, 1, 2], 4, 2, 0, 0)
    [(0, 1), (1, 2), (2, 0), (0, 2)]
    """
    count = len(broker_ids)
    if not 0 < replication_factor <= count:
        raise ValueError(f"{replication_factor} replicas cannot be placed on {count} brokers: ask for 1 to {count}")
    placed = []
    for partition in range(partitions):
        if partition and partition % count == 0:
            shift += 1
        first = (partition + start_index) % count
        others = (first + 1 + (shift + j) % (count - 1) for j in range(replication_factor - 1))
        placed.append((broker_ids[first], *(broker_ids[other % count] for other in others)))
    return placed
