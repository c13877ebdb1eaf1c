"""CONSUMER_SETTINGS: the settings of a consumer under Kafka's names, with defaults by release and legal values.

Five keys are no settings of Kafka. A client subscribes to `topics` in a call. `user.data` is the text that an assignor of the
user's own adds to the subscription. `protocol.metadata` replaces the bytes of the whole subscription, and `protocol.assignment`
the bytes of each assignment that the consumer sends as the group's leader; clients may be unable to read these bytes.
`client.release` is the release of the client library, which decides the versions of its requests and of the consumer protocol; a
later library than the brokers uses the brokers' versions.

The table does not check the limits of the session timeout: the coordinator does, with INVALID_SESSION_TIMEOUT. Read next:
`consumer_protocol.py`, which writes the subscription from these settings.

Source: ConsumerConfig.java (0.9.0, 0.10.1, 2.8, 3.0).
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from kcontrol.broker.broker_configs import LARGEST_INT
from kcontrol.cluster import topic_tool
from kcontrol.core.errors import UserError, listed
from kcontrol.core.releases import is_since, sort_key, value_in_force

GROUP_ID, INSTANCE_ID = "group.id", "group.instance.id"
SESSION_MS, HEARTBEAT_MS, POLL_MS = "session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms"
STRATEGY, TOPICS, CLIENT = "partition.assignment.strategy", "topics", "client.release"
USER_DATA, METADATA, ASSIGNMENT = "user.data", "protocol.metadata", "protocol.assignment"

STRATEGIES = {"range": "0.9", "roundrobin": "0.9", "sticky": "0.11.0", "cooperative-sticky": "2.4"}
"""The assignors, each with its first release. Source: KIP-54 (sticky), KIP-429 (cooperative-sticky)."""

CLASSES = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


LEGAL_ID = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""A group.instance.id, which has the characters and the length of a topic's name."""


class ConsumerSetting(NamedTuple):
    """One setting of a consumer: its defaults by release, and the form of a legal value."""

    # (first release, default), the oldest first; the first release has introduced the setting.
    defaults: tuple[tuple[str, Any], ...]
    # The kind of its values: "text", "id", "ms", "bytes", "topics", "strategies" or "release".
    form: str
    # The least value of a setting in ms.
    least: int = 0


# fmt: off
CONSUMER_SETTINGS: dict[str, ConsumerSetting] = {
    GROUP_ID:     ConsumerSetting((("0.9", ""),), "text"),
    INSTANCE_ID:  ConsumerSetting((("2.3", None),), "id"),
    STRATEGY:     ConsumerSetting((("0.9", ("range",)), ("3.0", ("range", "cooperative-sticky"))), "strategies"),
    TOPICS:       ConsumerSetting((("0.9", None),), "topics"),
    SESSION_MS:   ConsumerSetting((("0.9", 30_000), ("0.10.1", 10_000), ("3.0", 45_000)), "ms"),
    HEARTBEAT_MS: ConsumerSetting((("0.9", 3_000),), "ms"),
    POLL_MS:      ConsumerSetting((("0.10.1", 300_000),), "ms", least=1),
    USER_DATA:    ConsumerSetting((("0.9", None),), "bytes"),
    METADATA:     ConsumerSetting((("0.9", None),), "bytes"),
    ASSIGNMENT:   ConsumerSetting((("0.9", None),), "bytes"),
    CLIENT:       ConsumerSetting((("0.9", None),), "release"),
}
# fmt: on


def known(release: str) -> list[str]:
    """Return the names of the consumer settings that kcontrol simulates and that a consumer of this release has."""
    return [name for name, row in CONSUMER_SETTINGS.items() if is_since(row.defaults[0][0], release)]


class ConsumerConfig:
    """The settings of one consumer; a setting that is not in the mapping `given` has the default of the client's `release`."""

    __slots__ = ("given", "release")

    def __init__(self, release: str, given: Mapping[str, Any]) -> None:
        asked = given.get(CLIENT) or release
        # The argument `release` is that of the brokers; a client that is later uses the requests of the brokers' release.
        self.given, self.release = given, min(asked, release, key=sort_key)

    def __getitem__(self, name: str) -> Any:
        """Return the value of a setting, None where the client's release does not have the setting."""
        if name in self.given:
            return self.given[name]
        row = CONSUMER_SETTINGS[name].defaults
        return value_in_force(row, self.release) if is_since(row[0][0], self.release) else None

    @property
    def rebalance_timeout_ms(self) -> int:
        """Return the rebalance timeout of JoinGroup: max.poll.interval.ms, or before 0.10.1 the session timeout (KIP-62)."""
        return int(self[SESSION_MS] if self[POLL_MS] is None else self[POLL_MS])

    @property
    def is_cooperative(self) -> bool:
        """Return whether every assignor of the consumer supports the protocol COOPERATIVE (KIP-429).

        Source: ConsumerCoordinator.java, constructor (2.4, 2.8).
        """
        return all(name == "cooperative-sticky" for name in self[STRATEGY])


def checked(release: str, name: str, settings: Mapping[Any, Any]) -> dict[str, Any]:
    """Return `settings`, those of the consumer `name`, with converted values, such as a tuple for "range,sticky".

    Settings with the value None are left out; `release` is that of the brokers. Raises UserError for unknown settings and illegal
    values.
    """
    client = settings.get(CLIENT, release)
    if not isinstance(client, str) or not _is_client_release(client):
        raise UserError(f"Consumer {name} cannot have {CLIENT} {client!r}: use a release of Kafka from 0.9 on, such as '0.9'.")
    legal = known(min(client, release, key=sort_key))
    if unknown := [key for key in settings if key not in legal]:
        others = f"a consumer of Kafka {min(client, release, key=sort_key)} has {', '.join(legal)}"
        raise UserError(f"Consumer {name} has no setting {unknown[0]!r}; {others}.")
    found = {key: _value(name, key, value) for key, value in settings.items() if value is not None}
    config = ConsumerConfig(release, found)
    for strategy in config[STRATEGY]:
        if not is_since(STRATEGIES[strategy], config.release):
            raise UserError(f"Kafka {config.release} has no assignor {strategy}, which came in {STRATEGIES[strategy]}.")
    # The heartbeat interval must be below the session timeout.
    if config[HEARTBEAT_MS] >= config[SESSION_MS]:
        wrong = f"{HEARTBEAT_MS} {config[HEARTBEAT_MS]} is not below its {SESSION_MS} {config[SESSION_MS]}"
        raise UserError(f"Consumer {name} cannot start, because its {wrong}: set both, the first of them lower.")
    return found


def _is_client_release(value: str) -> bool:
    try:
        return is_since("0.9", value)
    except ValueError:
        return False


def _topic(name: str, topic: str) -> str:
    """Return `topic` if a topic can have this name. Raises UserError, with the name of the consumer, if not."""
    # A client of Kafka gets INVALID_TOPIC_EXCEPTION when it asks for the metadata of such a topic.
    try:
        return topic_tool.check_name(topic, (), "2.8")
    except topic_tool.TopicRefused as problem:
        raise UserError(f"Consumer {name} cannot subscribe to {topic!r:.80}, because {problem}.") from None


def _value(name: str, key: str, value: Any) -> Any:
    row = CONSUMER_SETTINGS[key]
    match row.form:
        case "ms" if not isinstance(value, int) or isinstance(value, bool) or not row.least <= value <= LARGEST_INT:
            legal = f"a whole number of milliseconds from {row.least} to {LARGEST_INT}"
        case "bytes" if not isinstance(value, bytes | str):
            legal = "bytes or text"
        case "bytes":
            return value.encode() if isinstance(value, str) else value
        case "strategies" | "topics" as form:
            words = [word.strip() for word in value.split(",")] if isinstance(value, str) else value
            # With a pattern that no topic matches a client joins without topics. Source: KafkaConsumer.subscribe (0.9, 2.8).
            is_empty = not words and form == "strategies"
            if isinstance(words, list | tuple) and not is_empty and all(isinstance(word, str) and word for word in words):
                named: list[str] = [CLASSES.get(word, word) if form == "strategies" else word for word in map(str, words)]
                names = tuple(dict.fromkeys(named))
                if form == "topics":
                    return tuple(_topic(name, topic) for topic in names)
                if set(names) <= set(STRATEGIES):
                    return names
            legal = (
                "names of topics" if form == "topics" else f"one or more of {listed(STRATEGIES, 9)}, in the order of preference"
            )
        case "text" if not isinstance(value, str):
            legal = "text"
        # Source: JoinGroupRequest.validateGroupInstanceId (2.3, 2.8).
        case "id" if not isinstance(value, str) or not LEGAL_ID.fullmatch(value) or value in (".", ".."):
            legal = f"text of 1 to 249 characters out of {topic_tool.LEGAL_CHARACTERS}, but not '.' or '..'"
        case _:
            return value
    raise UserError(f"The {key} of consumer {name} must be {legal}, not {value!r:.80}.")
