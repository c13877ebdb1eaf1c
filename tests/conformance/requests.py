"""Requests as the format shows them, and the patterns that are laid over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.conformance.values import is_within, plain

Request = dict[str, Any]

FIELDS = {"adding_replicas": "adding", "removing_replicas": "removing"}  # the product's names, where the format's differ


def of_batch(requests: Any) -> Iterator[Request]:
    """The requests of one folded batch, one for each broker, in the order of sending."""
    for api, broker in requests.in_send_order():
        request: Request = {"api": api, "to": broker, "controller_epoch": requests.controller_epoch}
        if api == "UpdateMetadata":
            request["live_brokers"] = list(requests.live_brokers)
        entries = {
            "LeaderAndIsr": lambda b: requests.leader_and_isr[b],
            "UpdateMetadata": lambda _: requests.update_metadata,
            "StopReplica": lambda b: requests.stop_replica[b],
        }[api](broker)
        request["partitions"] = {str(tp): _fields(entry) for tp, entry in entries.items()}
        yield request


def _fields(entry: Any) -> dict[str, Any]:
    return {FIELDS.get(name, name): plain(value) for name, value in entry._asdict().items()}


def matches(pattern: Mapping[str, Any], request: Request) -> bool:
    """Whether a request has all that a pattern asks for; live brokers are compared as a set, `none` stands for no partition."""
    wanted = dict(pattern)
    if "live_brokers" in wanted and set(wanted.pop("live_brokers")) != set(request.get("live_brokers", ())):
        return False
    if wanted.get("partitions") == "none":
        del wanted["partitions"]
        if request["partitions"]:
            return False
    return is_within(wanted, request)


def include(requests: list[Request], patterns: list[Any]) -> Any:
    missing = [pattern for pattern in patterns if not any(matches(pattern, request) for request in requests)]
    return {"not matched": missing, "recorded": requests} if missing else patterns


def exclude(requests: list[Request], patterns: list[Any]) -> Any:
    found = [request for request in requests if any(matches(pattern, request) for pattern in patterns)]
    return {"matched all the same": found} if found else patterns


def order(requests: list[Request], patterns: list[Any]) -> Any:
    """The patterns match a subsequence of the record."""
    rest = iter(requests)
    for number, pattern in enumerate(patterns):
        if not any(matches(pattern, request) for request in rest):
            return {"not matched in its turn": patterns[number], "recorded": requests}
    return patterns


def counts(requests: list[Request], expected: Mapping[str, int]) -> Any:
    """The number of requests by `api@broker`, for those that are asked about."""
    found = Counter(f"{request['api']}@{request['to']}" for request in requests)
    return {key: found[key] for key in expected}


CHECKS: dict[str, Callable[[list[Request], Any], Any]] = {
    # check            returns what is expected if it holds
    "requests_include": include,
    "requests_exclude": exclude,
    "request_order": order,
    "request_counts": counts,
}
