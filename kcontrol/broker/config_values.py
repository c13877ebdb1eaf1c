"""Legal values of Kafka's settings: their types, and the least values of the numbers.

SETTING_TYPES has a row for each setting of brokers and topics that kcontrol knows.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from operator import index
from typing import Any, NamedTuple

from kcontrol.core.releases import is_since, value_in_force


class SettingType(NamedTuple):
    """The type ("boolean", "int" or "long") and the least legal value of a setting, by release.

    Both fields have pairs of (first release, value), oldest first.
    """

    # The first pair has the release that introduced the setting.
    types: tuple[tuple[str, str], ...]
    # Empty for a boolean.
    minimums: tuple[tuple[str, int], ...] = ()


LARGEST = {"int": 2**31 - 1, "long": 2**63 - 1}
"""The integer types of Java, each with its largest value."""

OLD_PARSER = "0.9"
"""The release since which text is trimmed and `True` is legal for `true`.

Source: VerifiableProperties.scala (0.8), ConfigDef.parseType (0.9).
"""

BLANK = "".join(map(chr, range(33)))
"""The characters that Java's String.trim removes."""

# fmt: off
SETTING_TYPES: dict[str, dict[str, SettingType]] = {
    # Source: KafkaConfig.scala: getInt, getLong and getBoolean (0.8), configDef and validateValues
    # (0.9 to 3.9). Kafka has a least value for min.insync.replicas and for replica.lag.time.max.ms
    # (the default of replica.fetch.wait.max.ms); kcontrol adds the other least values.
    "broker": {
        "unclean.leader.election.enable":          SettingType((("0.8.2", "boolean"),)),
        "delete.topic.enable":                     SettingType((("0.8.1", "boolean"),)),
        "min.insync.replicas": SettingType((("0.8.2", "int"),), (("0.8.2", 1),)),
        "zookeeper.session.timeout.ms": SettingType((("0.8.0", "int"),), (("0.8.0", 1),)),
        "replica.lag.time.max.ms": SettingType(
            (("0.8.0", "long"),),
            (("0.8.0", 1), ("0.8.1", 500))),
        "controlled.shutdown.max.retries": SettingType((("0.8.0", "int"),), (("0.8.0", 0),)),
        "controlled.shutdown.retry.backoff.ms": SettingType(
            (("0.8.0", "int"), ("0.9.0", "long")),
            (("0.8.0", 0),)),
        "controller.socket.timeout.ms": SettingType((("0.8.0", "int"),), (("0.8.0", 1),)),
        "auto.leader.rebalance.enable":            SettingType((("0.8.1", "boolean"),)),
        "leader.imbalance.per.broker.percentage": SettingType((("0.8.1", "int"),), (("0.8.1", 0),)),
        "leader.imbalance.check.interval.seconds": SettingType(
            (("0.8.1", "int"), ("0.9.0", "long")),
            (("0.8.1", 1),)),
    },
    # Source: LogConfig.scala: validate (0.8.2 to 2.8); LogConfig.java (3.9).
    "topic": {
        "unclean.leader.election.enable":          SettingType((("0.8.2", "boolean"),)),
        "min.insync.replicas": SettingType((("0.8.2", "int"),), (("0.8.2", 1),)),
        "segment.bytes": SettingType((("0.9.0", "int"),), (("0.9.0", 14),)),
        "delete.retention.ms": SettingType((("0.9.0", "long"),), (("0.9.0", 0),)),
    },
}
# fmt: on


def names(scope: str, release: str) -> list[str]:
    """Return the names of the settings of `scope` ("broker" or "topic") that a release has."""
    rows = SETTING_TYPES[scope].items()
    return [name for name, row in rows if is_since(row.types[0][0], release)]


def read(scope: str, name: str, value: object, release: str) -> bool | int:
    """Return `value` as the bool or int of the setting `name`; a str is parsed as in `release`.

    `scope` is "broker" or "topic". Raises ValueError for an unknown setting or an illegal value.
    """
    if name not in names(scope, release):
        raise ValueError(_unknown(scope, name, release))
    taken = SETTING_TYPES[scope][name]
    kind = value_in_force(taken.types, release)
    if kind == "boolean":
        if (switch := _boolean(value, release, scope)) is not None:
            return switch
        legal = "true and false"
    else:
        number, least = _number(value, release), value_in_force(taken.minimums, release)
        if number is not None and least <= number <= LARGEST[kind]:
            return number
        legal = f"whole numbers from {least} to {LARGEST[kind]}"
    raise ValueError(f"{value!r} is no value of {name}: {legal} are legal")


def _unknown(scope: str, name: str, release: str) -> str:
    known = names(scope, release)
    brought = {known_name: taken.types[0][0] for known_name, taken in SETTING_TYPES[scope].items()}
    if name in brought:
        lack = f"Kafka {release} has no setting {name} of a {scope}, "
        lack += f"which came with {brought[name]}"
    else:
        lack = f"{name!r} is no setting of a {scope} here"
    closest = f"; did you mean {found}" if (found := closest_to(name, known)) else ""
    return f"{lack}{closest}; there are {', '.join(known)}" if known else f"{lack}; there are none"


def closest_to(name: str, known_names: Iterable[str]) -> str | None:
    """The known name that is spelled most like an unknown setting."""
    return next(iter(get_close_matches(name, list(known_names), n=1, cutoff=0.75)), None)


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
