"""Kafka's settings that the control plane depends on: a row for each in CONFIGS, with its defaults.

The default values of BrokerConfig come from CONFIGS, so that no default is written twice.
"""

from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Self

from kcontrol.broker import config_values
from kcontrol.core.controller_rules import Rules
from kcontrol.core.releases import value_in_force
from kcontrol.core.rule_fields import declared


class Config(NamedTuple):
    """One setting of a broker: its defaults, its meaning and its use in kcontrol."""

    # As in `server.properties`, with dots.
    name: str
    # Pairs of (first release, default), oldest first; a default None means that Kafka has none.
    defaults: tuple[tuple[str, Any], ...]
    meaning: str
    # Whether kcontrol's brokers read the setting; then BrokerConfig has a field of this name, with
    # underscores for dots.
    is_used: bool
    # A sentence: how kcontrol uses the setting, or why it does not.
    behavior_here: str

    def default(self, release: str) -> Any:
        """The default in a release. Raises IndexError before the first release of `defaults`."""
        return value_in_force(self.defaults, release)


LARGEST_INT = 2**31 - 1
NO_SOCKETS = "no: requests travel through the world's network, not through sockets"

# fmt: off
CONFIGS = {row.name: row for row in (
    Config("controller.socket.timeout.ms", (("0.8.0", 30_000),),
           "how long a broker waits for a response to or from the controller", True,
           "yes, if the receiver is frozen"),
    Config("controller.message.queue.size", (("0.8.0", 10), ("0.8.2", LARGEST_INT), ("2.8", None)),
           "the size of the controller's queue of requests to a broker; removed before 2.8", False,
           "no: the queues here are unbounded"),
    Config("controlled.shutdown.enable", (("0.8.0", True),),
           "whether a broker moves its leaderships to other brokers before it stops", False,
           "no: `terminate` moves them, `kill` does not"),
    Config("controlled.shutdown.max.retries", (("0.8.0", 3),),
           "how often a broker that stops sends ControlledShutdown again", True, "yes"),
    Config("controlled.shutdown.retry.backoff.ms", (("0.8.0", 5_000),),
           "how long the broker waits before it sends ControlledShutdown again", True,
           "yes, as a timer"),
    Config("auto.leader.rebalance.enable", (("0.8.0", False), ("0.8.2", True)),
           "whether the controller moves leaderships back to preferred replicas", True, "yes"),
    Config("leader.imbalance.per.broker.percentage", (("0.8.0", 10),),
           "the share of partitions without their preferred leader, above which it does", True,
           "yes"),
    Config("leader.imbalance.check.interval.seconds", (("0.8.0", 300),),
           "how often the controller computes this share", True, "yes, as a timer"),
    Config("unclean.leader.election.enable", declared(Rules)["unclean_default"].rows,
           "whether a replica outside the ISR may lead if no ISR member is alive; "
           "a topic's own setting takes precedence", True,
           "yes, by offline elections; 0.8.0 and 0.8.1 have no such setting and always allow it"),
    Config("min.insync.replicas", (("0.8.0", None), ("0.8.2", 1)),
           "how large the ISR must be for a leader to accept acks=all; "
           "a topic's own setting takes precedence", True,
           "yes, where replicas hold records; 0.8.0 and 0.8.1 have no such setting"),
    Config("delete.topic.enable", declared(Rules)["deletes_topics"].rows,
           "whether topics may be deleted", True, "yes, by the controller"),
    Config("zookeeper.session.timeout.ms", (("0.8.0", 6_000), ("2.5", 18_000)),
           "after how much silence of a broker ZooKeeper expires its session", True,
           "yes, on a real ZooKeeper; in a simulated world an action expires a session"),
    Config("zookeeper.connection.timeout.ms", (("0.8.0", None),),
           "how long a starting broker waits for ZooKeeper; by default the session timeout", False,
           "no: a broker here starts with a connection"),
    Config("zookeeper.max.in.flight.requests", (("0.8.0", None), ("1.1.0", 10)),
           "how many requests to ZooKeeper may be in flight", False,
           "no: a batch of any size is one round trip"),
    Config("replica.lag.time.max.ms", (("0.8.0", 10_000), ("2.5", 30_000)),
           "how long a follower may lag before its leader removes it from the ISR", True,
           "yes, where replicas hold records"),
    Config("replica.lag.max.messages", (("0.8.0", 4_000), ("0.9.0", None)),
           "how many messages a follower may lag", False, "no: followers lag by time alone"),
    Config("broker.id.generation.enable", (("0.8.0", None), ("0.9.0", True)),
           "whether a broker without a configured id gets one from ZooKeeper", False,
           "no: every broker here has its id"),
    Config("reserved.broker.max.id", (("0.8.0", None), ("0.9.0", 1_000)),
           "the largest id that may be configured", False, "no: every broker here has its id"),
    Config("default.replication.factor", (("0.8.0", 1),),
           "the replication factor of a topic for which none is given", False,
           "no: `create_topic` takes 1"),
    Config("num.partitions", (("0.8.0", 1),),
           "the number of partitions of a topic for which none is given", False,
           "no: `create_topic` takes 1"),
    Config("auto.create.topics.enable", (("0.8.0", True),),
           "whether a metadata request creates a missing topic", False,
           "no: there are no metadata requests here"),
    Config("control.plane.listener.name", (("0.8.0", None),),
           "the name of a separate listener for the controller's requests", False, NO_SOCKETS),
    Config("inter.broker.protocol.version", (("0.8.0", None),),
           "the version of the protocol between brokers; by default that of the release", False,
           "no: it is an argument of `rules` and picks formats, AlterIsr and topic ids"),
)}
# fmt: on


def default(name: str, release: str = "2.8") -> Any:
    """Return the default in `release` of a broker setting; None if Kafka has no default.

    `name` has dots or underscores. Raises KeyError for a setting without a row in CONFIGS,
    IndexError for a release that does not have the setting yet.
    """
    return CONFIGS[name.replace("_", ".")].default(release)


def _2_8(name: str) -> Any:
    return field(default=default(name))


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The settings in `server.properties`, with `_` for dots; the defaults are those of Kafka 2.8.

    Source: KafkaConfig.scala (2.8).
    """

    # None in the next two fields means the default of the cluster's release.
    unclean_leader_election_enable: bool | None = None
    delete_topic_enable: bool | None = None
    # None: the release has no such setting (before 0.8.2).
    min_insync_replicas: int | None = _2_8("min_insync_replicas")
    zookeeper_session_timeout_ms: int = _2_8("zookeeper_session_timeout_ms")
    replica_lag_time_max_ms: int = _2_8("replica_lag_time_max_ms")
    controlled_shutdown_max_retries: int = _2_8("controlled_shutdown_max_retries")
    controlled_shutdown_retry_backoff_ms: int = _2_8("controlled_shutdown_retry_backoff_ms")
    controller_socket_timeout_ms: int = _2_8("controller_socket_timeout_ms")
    auto_leader_rebalance_enable: bool = _2_8("auto_leader_rebalance_enable")
    leader_imbalance_per_broker_percentage: int = _2_8("leader_imbalance_per_broker_percentage")
    leader_imbalance_check_interval_seconds: int = _2_8("leader_imbalance_check_interval_seconds")

    @classmethod
    def of(cls, release: str) -> Self:
        """Return the defaults of `release`.

        Raises ValueError for text that is not two to four numbers with dots, and IndexError for a
        release before 0.8.0.
        """
        # A setting that the release lacks has its first default in CONFIGS.
        return cls(**{f.name: default(f.name, release) for f in fields(cls)})

    def with_setting(self, key: str, value: Any, release: str = "2.8") -> Self:
        """Return a copy with a new value of the setting `key`; a str is parsed as in `release`.

        Raises ValueError for an illegal `value`, and for a `key` (with dots or underscores) that
        kcontrol does not use.
        """
        dotted = str(key).replace("_", ".")
        if dotted in CONFIGS and not CONFIGS[dotted].is_used:
            reason = CONFIGS[dotted].behavior_here.removeprefix("no: ")
            raise ValueError(f"{dotted} does nothing here ({reason}): leave it out")
        name = dotted.replace(".", "_")
        # None is a legal value of the settings in UNSPECIFIED.
        if value is not None or name not in UNSPECIFIED:
            value = config_values.read("broker", dotted, value, release)
        return replace(self, **{name: value})


UNSPECIFIED = [f.name for f in fields(BrokerConfig) if f.default is None]
"""The settings whose value None means the default of the release."""
