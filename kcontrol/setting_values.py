"""What Kafka takes as the value of a setting: TAKEN has one row per setting of brokers and of topics, by release."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from operator import index
from typing import Any, NamedTuple

from kcontrol.releases import is_since, pick


class Taken(NamedTuple):
    """The types of a setting by release, the first row being the release that brought it, and its least number by release."""

    types: tuple[tuple[str, str], ...]
    least: tuple[tuple[str, int], ...] = ()


LARGEST = {"int": 2**31 - 1, "long": 2**63 - 1}
"""The integer types of Java, each with its largest value."""

OLD_PARSER = "0.9"
"""From this release on text is trimmed and True is true. Source: VerifiableProperties.scala (0.8), ConfigDef.parseType (0.9)."""

BLANK = "".join(map(chr, range(33)))
"""The characters that String.trim of Java takes away."""

# fmt: off
TAKEN: dict[str, dict[str, Taken]] = {
    # Source: KafkaConfig.scala: getInt, getLong and getBoolean (0.8), configDef and validateValues (0.9 to 3.9). Kafka itself has
    # a least number for min.insync.replicas and for replica.lag.time.max.ms, there the default of replica.fetch.wait.max.ms; the
    # others are ours.
    "broker": {
        "unclean.leader.election.enable":          Taken((("0.8.2", "boolean"),)),
        "delete.topic.enable":                     Taken((("0.8.1", "boolean"),)),
        "min.insync.replicas":                     Taken((("0.8.2", "int"),), (("0.8.2", 1),)),
        "zookeeper.session.timeout.ms":            Taken((("0.8.0", "int"),), (("0.8.0", 1),)),
        "replica.lag.time.max.ms":                 Taken((("0.8.0", "long"),), (("0.8.0", 1), ("0.8.1", 500))),
        "controlled.shutdown.max.retries":         Taken((("0.8.0", "int"),), (("0.8.0", 0),)),
        "controlled.shutdown.retry.backoff.ms":    Taken((("0.8.0", "int"), ("0.9.0", "long")), (("0.8.0", 0),)),
        "controller.socket.timeout.ms":            Taken((("0.8.0", "int"),), (("0.8.0", 1),)),
        "auto.leader.rebalance.enable":            Taken((("0.8.1", "boolean"),)),
        "leader.imbalance.per.broker.percentage":  Taken((("0.8.1", "int"),), (("0.8.1", 0),)),
        "leader.imbalance.check.interval.seconds": Taken((("0.8.1", "int"), ("0.9.0", "long")), (("0.8.1", 1),)),
    },
    # Source: LogConfig.scala: validate (0.8.2 to 2.8); LogConfig.java (3.9).
    "topic": {
        "unclean.leader.election.enable":          Taken((("0.8.2", "boolean"),)),
        "min.insync.replicas":                     Taken((("0.8.2", "int"),), (("0.8.2", 1),)),
    },
}
# fmt: on


def names(scope: str, release: str) -> list[str]:
    """The settings of a scope, "broker" or "topic", that a release has."""
    return [name for name, taken in TAKEN[scope].items() if is_since(taken.types[0][0], release)]


def read(scope: str, name: str, value: object, release: str) -> bool | int:
    """Return what a setting's value means: a bool or a number, or the text that Kafka's parser reads as one.

    Raises ValueError, listing what is legal, for a setting that the release does not have here, and for every other value.
    """
    if name not in names(scope, release):
        raise ValueError(_unknown(scope, name, release))
    taken = TAKEN[scope][name]
    kind = pick(taken.types, release)
    found = _boolean(value, release, scope) if kind == "boolean" else _number(value, release)
    if found is not None and (kind == "boolean" or pick(taken.least, release) <= found <= LARGEST[kind]):
        return found
    legal = "true and false" if kind == "boolean" else f"whole numbers from {pick(taken.least, release)} to {LARGEST[kind]}"
    raise ValueError(f"{value!r} is no value of {name}: {legal} are legal")


def _unknown(scope: str, name: str, release: str) -> str:
    known = names(scope, release)
    brought = {known_name: taken.types[0][0] for known_name, taken in TAKEN[scope].items()}
    if name in brought:
        lack = f"Kafka {release} has no setting {name} of a {scope}, which came with {brought[name]}"
    else:
        lack = f"{name!r} is no setting of a {scope} here"
    closest = f"; did you mean {found}" if (found := closest_to(name, known)) else ""
    return f"{lack}{closest}; there are {', '.join(known)}" if known else f"{lack}; there are none"


def closest_to(name: str, known: Iterable[str]) -> str | None:
    """The name that is spelled most like this one; None where nothing comes close."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=0.75)), None)


def _boolean(value: object, release: str, scope: str) -> bool | None:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return None
    text = value.strip(BLANK) if is_since(OLD_PARSER, release) else value
    any_case = is_since(OLD_PARSER, release) or scope == "topic"
    return {"true": True, "false": False}.get(text.lower() if any_case else text)


def _number(value: object, release: str) -> int | None:
    if isinstance(value, str):
        text = value.strip(BLANK) if is_since(OLD_PARSER, release) else value
        return int(text) if re.fullmatch(r"[+-]?\d{1,19}", text) else None
    return None if isinstance(value, bool) else _whole(value)


def _whole(value: Any) -> int | None:
    try:
        return index(value)
    except TypeError:
        return None
