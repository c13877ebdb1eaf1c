"""The settings of a broker that deciding depends on, under Kafka's names with underscores for dots."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """What `server.properties` says; None means the release's default. Source: KafkaConfig.scala (2.8)."""

    unclean_leader_election_enable: bool | None = None
    zookeeper_session_timeout_ms: int = 18_000
    replica_lag_time_max_ms: int = 30_000
    controlled_shutdown_max_retries: int = 3
    controlled_shutdown_retry_backoff_ms: int = 5_000
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_per_broker_percentage: int = 10
    leader_imbalance_check_interval_seconds: int = 300

    def but(self, key: str, value: Any) -> BrokerConfig:
        """The same settings with one changed; `key` may be written with dots. Raises ValueError naming the legal keys."""
        name = key.replace(".", "_")
        legal = [f.name for f in fields(self)]
        if name not in legal:
            raise ValueError(f"{key!r} is no setting of a broker here; there are {', '.join(n.replace('_', '.') for n in legal)}")
        return replace(self, **{name: value})
