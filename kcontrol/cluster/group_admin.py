"""Sends requests of an administrator about consumer groups: ListGroups, DescribeGroups, DeleteGroups and OffsetDelete.

The journal has the response as a record `respond` with a correlation id such as "group-admin DescribeGroups 17 billing".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from kcontrol.cluster.delivery import begin_if_idle, is_reachable
from kcontrol.cluster.refusals import no_coordinator
from kcontrol.core.errors import listed
from kcontrol.core.events import Event
from kcontrol.core.model import TopicPartition
from kcontrol.core.releases import is_since
from kcontrol.group import events as e
from kcontrol.group.handlers import REQUESTS

if TYPE_CHECKING:
    from kcontrol.cluster.world import World

PREFIX = "group-admin "
SINCE = {"ListGroups": "0.9", "DescribeGroups": "0.9", "DeleteGroups": "1.1", "OffsetDelete": "2.4"}
"""The requests, each with the first release that has it. Source: KIP-229 (DeleteGroups), KIP-496 (OffsetDelete)."""


WORDS = {
    "ListGroups": "list_groups", "DescribeGroups": "describe_group", "DeleteGroups": "delete_groups",
    "OffsetDelete": "delete_offsets",
}  # fmt: skip
"""The action that sends the request."""


def functions(api: str) -> tuple[Callable[..., bool], Callable[..., None], Callable[..., str]]:
    """The functions of the row of ACTIONS that sends the request `api`."""

    def possible(world: World, broker: int, arguments: Sequence[str]) -> bool:
        return can_ask(world, broker, api, arguments)

    def perform(world: World, broker: int, arguments: Sequence[str]) -> None:
        ask(world, broker, api, arguments)

    return possible, perform, lambda world, *given: why_not(world, given[0], api, given[1])


def can_ask(world: World, broker: int, api: str, arguments: Sequence[str]) -> bool:
    """Raises ValueError for an illegal request or argument."""
    if api not in SINCE or not isinstance(arguments, list | tuple) or not all(isinstance(word, str) for word in arguments):
        raise ValueError
    if api == "OffsetDelete":
        any(map(TopicPartition.parse, arguments[1:]))
    if (api == "DescribeGroups" and len(arguments) != 1) or (api in ("DeleteGroups", "OffsetDelete") and not arguments):
        raise ValueError
    return bool(world.settings.consumers) and is_since(SINCE[api], world.settings.release) and is_reachable(world, broker)


def why_not(world: World, broker: int | None, api: str, arguments: Sequence[str]) -> str:
    """Return why the request `api`, such as "DeleteGroups", cannot be sent to `broker` now (None: no broker was found).

    `arguments` are those of `can_ask`, which must have returned False.
    """
    if not world.settings.consumers:
        return "Brokers coordinate groups only in a run with consumers, as in Lab(consumers={'anna': 'billing'})"
    if not is_since(SINCE[api], world.settings.release):
        return f"Kafka {world.settings.release} has no {api}, which came in {SINCE[api]}"
    # The caller has found no coordinator of the group, or for ListGroups no broker at all.
    if broker is None:
        return no_coordinator(world, arguments[0]) if arguments else "No broker can be reached: start or thaw one, then ask again"
    living = listed((n for n in sorted(world.processes) if is_reachable(world, n)), 30)
    return f"Broker {broker!r} cannot be reached; {f'those that can: {living}' if living else 'no broker can'}"


def ask(world: World, broker: int, api: str, arguments: Sequence[str]) -> None:
    """`arguments`: group ids, states (ListGroups), or a group id and partitions (OffsetDelete)."""
    cause = world.log("act", None, action=[WORDS[api], broker, list(arguments)])
    correlation_id = f"{PREFIX}{api} {cause.seq} {' '.join(arguments[:1])}"
    driver = world.processes[broker].driver
    driver.enqueue(_event(correlation_id, api, tuple(arguments), driver.broker.metadata), cause)
    begin_if_idle(world, broker, REQUESTS)


def _event(correlation_id: str, api: str, arguments: tuple[str, ...], known_partitions: Collection[TopicPartition]) -> Event:
    match api:
        case "ListGroups":
            return e.ListGroups(correlation_id, arguments)
        case "DescribeGroups":
            return e.DescribeGroup(correlation_id, arguments[0])
        case "DeleteGroups":
            return e.DeleteGroups(correlation_id, tuple(dict.fromkeys(arguments)))
    asked = tuple(dict.fromkeys(map(TopicPartition.parse, arguments[1:])))
    named = tuple(tp for tp in asked if tp in known_partitions)
    return e.OffsetDelete(correlation_id, arguments[0], named, tuple(tp for tp in asked if tp not in known_partitions))
