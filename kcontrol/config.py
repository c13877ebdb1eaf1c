"""Kafka's settings that the control plane depends on: CONFIGS has one row for each, with its default in every release.

BrokerConfig takes its values from here: what a broker of a world does is what its row says.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from kcontrol import setting_values
from kcontrol.releases import pick


class Config(NamedTuple):
    """One setting: its defaults by release (None: there is none), what it means, and what it does here, or why nothing.

    `is_used` says whether a world listens to it; then BrokerConfig has a field of its name, with underscores for dots.
    """

    name: str
    defaults: tuple[tuple[str, Any], ...]
    meaning: str
    is_used: bool
    here: str

    def default(self, release: str) -> Any:
        """The default in a release."""
        return pick(self.defaults, release)


LARGEST_INT = 2**31 - 1
NO_SOCKETS = "no: requests travel through the world's network, not through sockets"

# fmt: off
CONFIGS = {row.name: row for row in (
    Config("controller.socket.timeout.ms", (("0.8.0", 30_000),),
           "how long brokers wait for an answer to requests between the controller and the others", True,
           "yes, where the receiver is frozen"),
    Config("controller.message.queue.size", (("0.8.0", 10), ("0.8.2", LARGEST_INT), ("2.8", None)),
           "how many requests may wait for one broker; gone by 2.8", False, "no: the queues here are unbounded"),
    Config("controlled.shutdown.enable", (("0.8.0", True),),
           "whether a broker hands over what it leads before it ends", False, "no: `term` hands over, `kill` does not"),
    Config("controlled.shutdown.max.retries", (("0.8.0", 3),),
           "how often a broker that wants to end asks again", True, "yes, by the broker that ends"),
    Config("controlled.shutdown.retry.backoff.ms", (("0.8.0", 5_000),),
           "how long it waits before it asks again", True, "yes, as a timer"),
    Config("auto.leader.rebalance.enable", (("0.8.0", False), ("0.8.2", True)),
           "whether the controller looks for brokers that lead too little", True, "yes"),
    Config("leader.imbalance.per.broker.percentage", (("0.8.0", 10),),
           "from what share of misplaced leaders on it acts", True, "yes"),
    Config("leader.imbalance.check.interval.seconds", (("0.8.0", 300),),
           "how often it looks", True, "yes, as a timer"),
    Config("unclean.leader.election.enable", (("0.8.0", True), ("0.11.0", False)),
           "whether a replica that lags behind may lead when nobody in sync is alive; topics may say otherwise", True,
           "yes, by offline elections; 0.8.0 and 0.8.1 have no such switch and always allow it"),
    Config("min.insync.replicas", (("0.8.0", None), ("0.8.2", 1)),
           "how many replicas must be in sync before a leader accepts acks=all; topics may say otherwise", True,
           "yes, where replicas hold records; 0.8.0 and 0.8.1 have no such setting"),
    Config("delete.topic.enable", (("0.8.0", False), ("1.0", True)),
           "whether topics may be deleted", True, "yes, by the controller"),
    Config("zookeeper.session.timeout.ms", (("0.8.0", 6_000), ("2.5", 18_000)),
           "how long ZooKeeper keeps the ephemeral znodes of a broker that is silent", True,
           "yes, on a real ZooKeeper; in a simulated world a session expires by an act"),
    Config("zookeeper.connection.timeout.ms", (("0.8.0", None),),
           "how long a broker waits for ZooKeeper at its start; that of the session where nothing is said", False,
           "no: a broker here is handed its connection"),
    Config("zookeeper.max.in.flight.requests", (("0.8.0", None), ("1.1.0", 10)),
           "how many requests to ZooKeeper may be under way", False, "no: a batch is one round trip whatever its size"),
    Config("replica.lag.time.max.ms", (("0.8.0", 10_000), ("2.5", 30_000)),
           "how long a follower may lag before its leader wants it out of the ISR", True, "yes, where replicas hold records"),
    Config("replica.lag.max.messages", (("0.8.0", 4_000), ("0.9.0", None)),
           "how many messages a follower may lag", False, "no: followers lag by time alone"),
    Config("broker.id.generation.enable", (("0.8.0", None), ("0.9.0", True)),
           "whether ZooKeeper hands out ids to brokers that have none", False, "no: every broker here has its id"),
    Config("reserved.broker.max.id", (("0.8.0", None), ("0.9.0", 1_000)),
           "the largest id that people may give", False, "no: as above"),
    Config("default.replication.factor", (("0.8.0", 1),),
           "how many replicas a topic gets when nobody says", False, "no: `create_topic` takes 1"),
    Config("num.partitions", (("0.8.0", 1),),
           "how many partitions a topic gets when nobody says", False, "no: as above"),
    Config("auto.create.topics.enable", (("0.8.0", True),),
           "whether asking for a topic creates it", False, "no: nobody asks for metadata here"),
    Config("control.plane.listener.name", (("0.8.0", None),),
           "a listener of their own for the controller's requests", False, NO_SOCKETS),
    Config("inter.broker.protocol.version", (("0.8.0", None),),
           "which protocol brokers speak with each other; that of the release where nothing is said", False,
           "as an argument of `rules`, not of a broker: it picks formats, AlterIsr and topic ids"),
)}
# fmt: on


def default(name: str, release: str = "2.8") -> Any:
    """The default of a setting, written with dots or underscores. Raises KeyError for one that is not in the table."""
    return CONFIGS[name.replace("_", ".")].default(release)


def _as_in_2_8(name: str) -> Any:
    return field(default=default(name))


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """What `server.properties` says, and Kafka 2.8's defaults where it says nothing; `of` takes those of another release.

    None, for unclean elections and the deletion of topics, is the release's default. Source: KafkaConfig.scala (2.8).
    """

    unclean_leader_election_enable: bool | None = None
    delete_topic_enable: bool | None = None
    min_insync_replicas: int | None = _as_in_2_8("min_insync_replicas")
    zookeeper_session_timeout_ms: int = _as_in_2_8("zookeeper_session_timeout_ms")
    replica_lag_time_max_ms: int = _as_in_2_8("replica_lag_time_max_ms")
    controlled_shutdown_max_retries: int = _as_in_2_8("controlled_shutdown_max_retries")
    controlled_shutdown_retry_backoff_ms: int = _as_in_2_8("controlled_shutdown_retry_backoff_ms")
    controller_socket_timeout_ms: int = _as_in_2_8("controller_socket_timeout_ms")
    auto_leader_rebalance_enable: bool = _as_in_2_8("auto_leader_rebalance_enable")
    leader_imbalance_per_broker_percentage: int = _as_in_2_8("leader_imbalance_per_broker_percentage")
    leader_imbalance_check_interval_seconds: int = _as_in_2_8("leader_imbalance_check_interval_seconds")

    @classmethod
    def of(cls, release: str) -> BrokerConfig:
        """The defaults of a release. Raises ValueError for what does not look like one."""
        return cls(**{f.name: default(f.name, release) for f in fields(cls)})

    def but(self, key: str, value: Any, release: str = "2.8") -> BrokerConfig:
        """The same settings with one changed, as Kafka's parser of that release reads it; `key` may be written with dots.

        Raises ValueError, listing what is legal, for an unknown key and for a value of another type or out of range.
        """
        dotted = str(key).replace("_", ".")
        if dotted in CONFIGS and not CONFIGS[dotted].is_used:
            raise ValueError(f"{dotted} does nothing here ({CONFIGS[dotted].here.removeprefix('no: ')}): leave it out")
        name = dotted.replace(".", "_")
        found: Any = None if value is None and name in UNSAID else setting_values.read("broker", dotted, value, release)
        return replace(self, **{name: found})


UNSAID = [f.name for f in fields(BrokerConfig) if f.default is None]
"""The settings that may be left to the release."""
