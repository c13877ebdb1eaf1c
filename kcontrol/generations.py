"""What differs between Kafka's releases: rule -> (since, value), ...; `rules(release)` picks one column.

Source: the branches of Kafka that each row names; the order of releases is that of `../docs/sources.md`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

FIRST_RELEASE, LAST_RELEASE = "0.8.0", "3.9"

# fmt: off
RULES: dict[str, tuple[tuple[str, Any], ...]] = {
    # rule                    since, value ...                       what it decides
    "offline_order":          (("0.8.0", "isr"), ("0.8.2", "ar")),   # who leads after an offline election (KAFKA-1503)
    "unclean_default":        (("0.8.0", True), ("0.11.0", False)),  # unclean.leader.election.enable
    "fenced_writes":          (("0.8.0", False), ("2.1.0", True)),   # every write checks /controller_epoch (KAFKA-6082)
    "pipelined":              (("0.8.0", False), ("1.1.0", True)),   # one round trip per batch, not per path (KAFKA-5501)
    "offline_at_startup":     (("0.8.0", False), ("2.3.0", True)),   # dead replicas leave the ISR at failover (KAFKA-7836)
    "truncate_to":            (("0.8.0", "high_watermark"),          # how far a new follower cuts its log
                               ("0.11.0", "leader_epoch"),           # (KIP-101)
                               ("2.0.0", "common_epoch")),           # (KIP-279)
    "rejoins_at":             (("0.8.0", "high_watermark"),          # up to where a follower must be to enter the ISR
                               ("1.1.2", "leader_epoch_start")),     # (KAFKA-7128)
    "fenced_fetches":         (("0.8.0", False), ("2.1.0", True)),   # a fetch names its leader epoch (KIP-320)
}
PROTOCOL_RULES: dict[str, tuple[tuple[str, Any], ...]] = {
    # asked of inter.broker.protocol.version, whose default is the release's
    "alter_isr":              (("0.8.0", False), ("2.7", True)),     # leaders ask the controller for ISR changes (KIP-497)
    "topic_ids":              (("0.8.0", False), ("2.8", True)),     # topics carry an id (KIP-516)
    "features":               (("0.8.0", False), ("2.7", True)),     # /feature and broker registration version 5 (KIP-584)
}
# fmt: on


@dataclass(frozen=True, slots=True)
class Rules:
    """One column of the table, with the release and the protocol that picked it."""

    release: str
    inter_broker_protocol: str
    offline_order: str
    unclean_default: bool
    fenced_writes: bool
    pipelined: bool
    offline_at_startup: bool
    truncate_to: str
    rejoins_at: str
    fenced_fetches: bool
    alter_isr: bool
    topic_ids: bool
    features: bool

    def but(self, **changes: Any) -> Rules:
        """The same column with some rules changed, as a "what if". Raises TypeError for a rule that does not exist."""
        return replace(self, **changes)


def rules(release: str, inter_broker_protocol: str | None = None) -> Rules:
    """The rules in force in `release` ("0.8.1", "2.8", "2.8.2"); the latest row that is not later wins.

    Raises ValueError for what is no release from 0.8.0 to 3.9.
    """
    protocol = inter_broker_protocol or release
    at, spoken = _key(release), _key(protocol)
    if not _key(FIRST_RELEASE) <= at < (*_key(LAST_RELEASE), 1_000):
        raise ValueError(f"{release!r} is no release from {FIRST_RELEASE} to {LAST_RELEASE}, the last one with ZooKeeper")
    chosen = {name: _pick(rows, at) for name, rows in RULES.items()}
    chosen |= {name: _pick(rows, spoken) for name, rows in PROTOCOL_RULES.items()}
    return Rules(release, protocol, **chosen)


def _pick(rows: tuple[tuple[str, Any], ...], at: tuple[int, ...]) -> Any:
    return [value for since, value in rows if _key(since) <= at or _key(since)[:2] == at][-1]


def _key(release: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[0-9]+(\.[0-9]+){1,3}", release):
        raise ValueError(f"{release!r} is no release: it should look like 2.8 or 0.8.2")
    return tuple(map(int, release.split(".")))


KAFKA_0_8_0, KAFKA_0_8_1, KAFKA_0_8_2 = rules("0.8.0"), rules("0.8.1"), rules("0.8.2")
KAFKA_0_9_0, KAFKA_0_10_2, KAFKA_0_11_0 = rules("0.9.0"), rules("0.10.2"), rules("0.11.0")
KAFKA_1_0, KAFKA_1_1, KAFKA_2_4, KAFKA_2_8, KAFKA_3_9 = rules("1.0"), rules("1.1"), rules("2.4"), rules("2.8"), rules("3.9")
