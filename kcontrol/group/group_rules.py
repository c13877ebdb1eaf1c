"""Rules of the group coordinator: one field for each difference between Kafka's releases.

`group_rules(release)` returns the value of each rule.

Source: the branches of Kafka from 0.9 on, the first release with this coordinator; many rules name
a KIP or an issue. How a group responds in each state is a table of its own, with releases in its
rows: group/request_reactions.py.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, Self

from kcontrol.core.releases import sort_key
from kcontrol.core.rule_fields import LAST_RELEASE, column, since, since_protocol

AppendErrors = Literal["few", "all"]


# fmt: off
@dataclass(frozen=True, slots=True)
class GroupRules:
    """The rules of the group coordinator with their values in one release of Kafka.

    A rule is a difference between releases.
    """

    release: str

    # ------------------------------------------------------------ states and timeouts

    keeps_empty_groups: bool = since(("0.9.0", False), ("0.10.1", True),
        doc="Whether a group without members becomes Empty instead of Dead (KAFKA-2720).")
    completing_rebalance_name: Literal["AwaitingSync", "CompletingRebalance"] = since(
        ("0.9.0", "AwaitingSync"), ("1.1.0", "CompletingRebalance"),
        doc="Kafka's name of the state in which members wait for their assignment.")
    rebalance_timeouts: bool = since(("0.9.0", False), ("0.10.1", True),
        doc="Whether a member has a rebalance timeout besides its session timeout (KIP-62).")
    initial_delay: bool = since(("0.9.0", False), ("0.11.0", True),
        doc="Whether the first rebalance of an Empty group waits for more members (KIP-134).")
    new_member_timeout_ms: int | None = since(("0.9.0", None), ("2.1.0", 300_000),
        doc="How many ms the JoinGroup of a new member may stay unanswered (KAFKA-7610).")
    sync_timeout: bool = since(("0.9.0", False), ("2.8.0", True),
        doc="Whether a member that sends no SyncGroup in time is removed (KAFKA-12487).")

    ends_removed_sessions: bool = since(("0.9.0", False), ("2.0.1", True),
        doc="Whether the session of a member ends when the end of a join phase removes the member; "
            "otherwise its deadline begins one more rebalance (KAFKA-7196).")

    # ------------------------------------------------------------ members

    static_rejoin: Literal["unknown", "current", "stored"] = since(
        ("0.9.0", "unknown"), ("2.3.0", "current"), ("2.6.0", "stored"),
        doc="When a static member that joins again gets a new id: never, as there are no static "
            "members (\"unknown\"), at once (\"current\"), or when the group is in the log "
            "(\"stored\") (KIP-345).")
    answers_removed_member: bool = since(("0.9.0", False), ("2.1.0", True),
        doc="Whether a removed member gets a response to its parked JoinGroup.")
    responses_name_protocol: bool = since(("0.9.0", False), ("2.5.0", True),
        doc="Whether the responses to JoinGroup and SyncGroup name the protocol (KIP-559).")
    leave_answer: Literal["one error", "one error each"] = since(
        ("0.9.0", "one error"), ("2.4.0", "one error each"),
        doc="Whether the response to LeaveGroup has one error code, or one for each member "
            "(KIP-345).")

    # ------------------------------------------------------------ errors and sessions

    loading_first: bool = since(("0.9.0", False), ("2.0.0", True),
        doc="Whether the coordinator first checks whether the group is being loaded. Otherwise it "
            "first checks whether it is the coordinator; SyncGroup then ignores a load "
            "(KAFKA-6446).")
    error_generation: Literal[0, -1] = since(("0.9.0", 0), ("2.2.0", -1),
        doc="Which generation the response to a refused JoinGroup contains.")

    # ------------------------------------------------------------ offsets, log and loading

    fetch_error: Literal["each partition", "top level"] = since(
        ("0.9.0", "each partition"), ("0.10.2", "top level"),
        doc="Where the response to OffsetFetch has its error. With \"top level\", a request for "
            "all partitions has null as its list; before, an empty list (KIP-88).")
    offsets_need_group: bool = since(("0.9.0", False), ("0.10.1", True),
        doc="Whether offsets belong to a group in the cache, instead of a cache beside the groups.")
    expiry: Literal["commit", "empty", "unsubscribed"] = since(
        ("0.9.0", "commit"), ("2.1.0", "empty"), ("2.4.0", "unsubscribed"),
        doc="From when an offset's retention counts: from its commit; from the time at which the "
            "group became Empty; or, in a group with members of which none subscribes to the "
            "topic, from the commit too (KIP-211, KAFKA-8338).")
    rebalance_keeps_offsets: bool = since(("0.9.0", False), ("2.8.2", True),
        doc="Whether offsets of topics to which no member subscribes expire in a Stable group "
            "only, and not during a rebalance (KAFKA-13636).")
    append_errors: AppendErrors = since(("0.9.0", "few"), ("0.10.1", "all"),
        doc="Which errors of the log are translated for clients; \"few\" leaves out a lack of "
            "replicas (KAFKA-4086).")
    loads_up_to: Literal["high watermark", "log end offset"] = since(
        ("0.9.0", "high watermark"), ("0.11.0", "log end offset"),
        doc="Where a load ends that reads a partition of the offsets topic.")
    coordinator_epochs: bool = since(("0.9.0", False), ("2.8.0", True),
        doc="Whether the coordinator ignores an election or resignation of an older leader epoch "
            "(KAFKA-12460).")
    resigns_without_replica: bool = since(("0.9.0", False), ("0.11.0", True),
        doc="Whether a coordinator resigns when StopReplica deletes its replica of the partition; "
            "otherwise it keeps the partition and its groups (KAFKA-4362).")
    needs_offsets_replicas: bool = since(("0.9.0", False), ("0.11.0", True),
        doc="Whether a broker creates no offsets topic while fewer brokers live than "
            "offsets.topic.replication.factor; otherwise the topic gets fewer replicas (KIP-115).")
    group_value: Literal[0, 1, 2, 3] = since_protocol(
        ("0.9.0", 0), ("0.10.1", 1), ("2.1", 2), ("2.3", 3),
        doc="The version of the format of a group's record.")
    offset_value: Literal[1, 3] = since_protocol(("0.9.0", 1), ("2.1", 3),
        doc="The version of the format of an offset's record, unless that has an expiry time.")

    def with_changes(self, **changes: Any) -> Self:
        """Raises TypeError for an unknown rule."""
        return replace(self, **changes)
# fmt: on


@cache
def group_rules(release: str, inter_broker_protocol: str | None = None) -> GroupRules:
    """`inter_broker_protocol` None: the release's. Raises ValueError outside 0.9 to 3.9."""
    if not sort_key("0.9.0")[:2] <= sort_key(release) < (*sort_key(LAST_RELEASE), 1_000):
        legal = f"the releases are 0.9 to {LAST_RELEASE}"
        raise ValueError(f"{release!r} has no group coordinator; {legal}")
    return GroupRules(release, **column(GroupRules, release, inter_broker_protocol or release))
