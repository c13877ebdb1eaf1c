"""Decides which partitions may elect a replica outside the ISR, which may lose records.

The controller reads a topic's settings at the moment of the election, and only if no ISR member is
online.

Source: ZkPartitionStateMachine.collectUncleanLeaderElectionState (2.8).
"""

from collections.abc import Generator, Iterable
from typing import Any

from kcontrol.controller.context import ControllerContext
from kcontrol.core.effects import Effect, Read, Znode
from kcontrol.core.model import LeaderAndIsr, TopicPartition
from kcontrol.core.znodes import decode_topic_config, topic_config_path


def partitions_for_unclean_election(
    ctx: ControllerContext, stored: dict[TopicPartition, LeaderAndIsr], *, is_requested: bool
) -> Generator[Effect, Any, frozenset[TopicPartition]]:
    """Return the partitions that have no online ISR member and may get an unclean election.

    A partition may get one if its topic allows unclean elections, or if an admin client requests
    the election (`is_requested`). `stored` has the leadership in the state znodes.

    Source: ZkPartitionStateMachine.collectUncleanLeaderElectionState (2.8).
    """
    without_isr = [
        tp
        for tp, value in stored.items()
        if not any(ctx.is_replica_online(b, tp) for b in value.isr)
    ]
    if not without_isr or is_requested:
        return frozenset(without_isr)
    allowed = yield from ctx.design.machines.unclean_allowed(ctx, (tp.topic for tp in without_isr))
    return frozenset(tp for tp in without_isr if allowed[tp.topic])


def unclean_allowed(
    ctx: ControllerContext, topics: Iterable[str]
) -> Generator[Effect, Any, dict[str, bool]]:
    """Read the topics' settings; return for each topic whether it allows unclean elections.

    The default of this broker holds for a topic without the setting.

    Source: KafkaZkClient.getLogConfigs and LogConfig.uncleanLeaderElectionEnable (2.8).
    """
    topics = tuple(dict.fromkeys(topics))
    znodes: tuple[Znode | None, ...] = yield Read(tuple(map(topic_config_path, topics)))
    return {topic: _allows_unclean(ctx, znode) for topic, znode in zip(topics, znodes, strict=True)}


def _allows_unclean(ctx: ControllerContext, znode: Znode | None) -> bool:
    overrides = decode_topic_config(znode.data) if znode else {}
    if "unclean.leader.election.enable" in overrides:
        return overrides["unclean.leader.election.enable"].strip().lower() == "true"
    default = ctx.config.unclean_leader_election_enable
    return ctx.rules.unclean_default if default is None else default
