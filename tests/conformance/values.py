"""Reading the values of a case file, and comparing what happened with what it expects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any

from kcontrol.core.model import PartitionReplica, PartitionState, ReplicaAssignment, TopicPartition


class CannotPlay(Exception):
    """The case asks for something by a name that is not known here, or that the product does not have yet."""

    @classmethod
    def unknown(cls, what: str, name: object, legal: Iterable[str]) -> CannotPlay:
        """The refusal of a name, with those there are."""
        return cls(f"unknown {what} {name!r}; there are {', '.join(sorted(legal))}")


def look_up(table: Mapping[str, Any], what: str, name: object) -> Any:
    """The row of a table. Raises CannotPlay, naming what was asked for."""
    if name not in table:
        raise CannotPlay.unknown(what, name, table)
    return table[str(name)]


def only_item(item: Mapping[str, Any], what: str) -> tuple[str, Any]:
    """The one key of an action or a step with its value. Raises CannotPlay if there is not exactly one."""
    if not isinstance(item, Mapping) or len(item) != 1:
        raise CannotPlay(f"{what} {item!r} should have exactly one key")
    return next(iter(item.items()))


def plain(value: Any) -> Any:
    """A value in JSON's own types: keys as text, tuples as lists, sets sorted, partitions as `t-0`, states by Kafka's names."""
    match value:
        case Mapping():
            return {str(plain(key)): plain(item) for key, item in value.items()}
        case TopicPartition() | PartitionReplica():
            return str(value)
        case Enum():
            return value.value
        case AbstractSet():
            return sorted((plain(item) for item in value), key=str)
        case list() | tuple():
            return [plain(item) for item in value]
    return value


def partition(text: str) -> TopicPartition:
    return TopicPartition.parse(text)


def replica(text: str) -> PartitionReplica:
    return PartitionReplica.parse(text)


def partitions(texts: Iterable[str]) -> tuple[TopicPartition, ...]:
    return tuple(map(partition, texts))


def assignment(given: Any) -> ReplicaAssignment:
    """A list of replicas, or the triple of replicas, adding and removing."""
    if not isinstance(given, Mapping):
        return ReplicaAssignment(tuple(given))
    return ReplicaAssignment(*(tuple(given.get(name, ())) for name in ("replicas", "adding", "removing")))


def short_state(state: PartitionState) -> str:
    """`Online`, as the format names a partition's state, for `OnlinePartition`."""
    return state.value.removesuffix("Partition")


PARTITION_STATES = {short_state(state): state for state in PartitionState}


def pick(actual: Any, expected: Any) -> Any:
    """Of `actual`, only what `expected` speaks of: its keys, also within maps; anything else is taken as it is."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        return {key: pick(actual[key], item) for key, item in expected.items() if key in actual}
    return actual


def is_within(expected: Any, actual: Any) -> bool:
    """Whether every key that `expected` has is in `actual` with an equal value, maps within maps likewise."""
    return bool(pick(actual, expected) == expected)


def in_order_of(actual: Iterable[Any], expected: Iterable[Any]) -> list[Any]:
    """`actual` as a set, listed so that it equals `expected` if the two have the same members."""
    found = {str(plain(item)): plain(item) for item in actual}
    wanted = [str(plain(item)) for item in expected]
    first = [found.pop(key) for key in dict.fromkeys(wanted) if key in found]
    return first + sorted(found.values(), key=str)
