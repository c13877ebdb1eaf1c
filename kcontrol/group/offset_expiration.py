"""Handlers that delete offsets and groups: by age, by DeleteGroups, by OffsetDelete.

The scheduler looks for expired offsets at the start of the process, then every
`offsets.retention.check.interval.ms`. Each deleted offset leaves a tombstone in the log.

Source: deleteExpiredOffsets (0.9), removeExpiredOffsets of GroupMetadata.scala,
cleanupGroupMetadata of GroupMetadataManager.scala, handleDeleteGroups and handleDeleteOffsets of
GroupCoordinator.scala (2.8).
"""

# An offset expires by its own time, or (since 2.1, KIP-211) by the group's retention, counted from
# its commit or from the time at which the group became Empty. Offsets of a group with members
# expire only if no member subscribes to the topic (since 2.4, KAFKA-8338). An Empty group is
# removed with the last of its offsets.
from collections.abc import Collection

from kcontrol.core.effects import Append, CancelTimer, Handler, Respond, SetTimer
from kcontrol.core.model import TopicPartition
from kcontrol.group import events as e
from kcontrol.group import group_strategies as strategies
from kcontrol.group.context import GroupContext, cache_offsets
from kcontrol.group.group_machine import DEAD, EMPTY, STABLE, new_group, transition_to
from kcontrol.group.model import CONSUMER, Group, Offsets
from kcontrol.group.offsets_topic_records import group_key, offset_key
from kcontrol.group.rebalance import session_timer
from kcontrol.group.request_reactions import react

EXPIRY_TIMER = "delete-expired-group-metadata"
"""The name of the scheduler's task (0.10.1 on). Source: startup of GroupMetadataManager.scala."""


def expire_offsets(ctx: GroupContext, event: e.ExpireOffsets) -> Handler:
    """Remove the expired offsets of all groups; remove each Empty group that then has no offsets.

    If `event.is_scheduled` is True, also set the timer of the next check.

    Source: deleteExpiredOffsets (0.9), cleanupGroupMetadata and startup (2.8).
    """
    if event.is_scheduled:
        yield SetTimer(EXPIRY_TIMER, ctx.config.check_interval_ms, event, periodic=True)
    for group_id in dict.fromkeys([*ctx.groups, *ctx.offsets]):
        gone, held = expired_partitions(ctx, group_id, event.timestamp_ms), ctx.offsets_of(group_id)
        after = held.without_committed(gone)
        yield from remove_offsets(ctx, group_id, gone, after, event.timestamp_ms)


def expired_partitions(ctx: GroupContext, group_id: str, now_ms: int) -> tuple[TopicPartition, ...]:
    """Return the group's partitions whose committed offset has expired at `now_ms`.

    A partition with a pending commit is left out. `now_ms` is in ms since 1970.

    Source: removeExpiredOffsets of GroupMetadata.scala (2.8).
    """
    held, group = ctx.offsets_of(group_id), ctx.groups.get(group_id)
    about = group or new_group(ctx, group_id, None, -1)  # 0.9 has offsets of no group
    facts = ctx.name_of(about.state), about.state_timestamp_ms, about.protocol_type
    question = strategies.ExpiringGroup(ctx.rules.expiry, *facts, ctx.config.retention_ms)
    settled = {tp: stored.value for tp, stored in held.committed.items() if tp not in held.pending}
    offsets = {
        tp: strategies.ExpiringOffset(
            value.commit_timestamp, value.expire_timestamp, not _is_unsubscribed(ctx, about, tp)
        )
        for tp, value in settled.items()
    }
    # Kafka's function, or the function by which a user of the lab has replaced it.
    has_expired = strategies.rule(ctx, strategies.EXPIRED)
    return tuple(tp for tp, offset in offsets.items() if has_expired(offset, question, now_ms))


def _is_unsubscribed(ctx: GroupContext, group: Group, tp: TopicPartition) -> bool:
    """Return whether no member of the group's last generation subscribes to the topic.

    Return False if the subscriptions are unknown, if the protocol type is not "consumer", before
    2.4, and since 2.8.2 also if the group is not Stable.

    Source: removeExpiredOffsets of GroupMetadata.scala (2.4.1, 2.8.1, 2.8.2), KAFKA-8338.
    """
    topics, rules = group.subscribed_topics, ctx.rules
    if rules.expiry != "unsubscribed" or group.protocol_type != CONSUMER or topics is None:
        return False
    return tp.topic not in topics and (group.state is STABLE or not rules.rebalance_keeps_offsets)


def remove_offsets(
    ctx: GroupContext, group_id: str, gone: Collection[TopicPartition], after: Offsets, now_ms: int
) -> Handler:
    """Set the group's offsets to `after`, and write tombstones for the partitions in `gone`.

    If the group is Empty and `after` is empty, remove the group too. `now_ms` is the time in ms
    since 1970.

    Source: cleanupGroupMetadata of GroupMetadataManager.scala, hasOffsets of GroupMetadata.scala
    (2.8).
    """
    held, group = ctx.offsets_of(group_id), ctx.groups.get(group_id)
    # A partition without a committed offset gets no tombstone.
    tombstones = [offset_key(group_id, tp) for tp in gone if tp in held.committed]
    if after != held:
        yield cache_offsets(group_id, after)
    # A group with an open transaction stays, even if the transaction has no offset left.
    is_left = group and (group.state is DEAD or (group.state is EMPTY and not after))
    if group and is_left and ctx.rules.offsets_need_group:
        for member_id in group.pending_members:
            yield CancelTimer(session_timer(group_id, member_id))
        yield from transition_to(ctx, group, DEAD, now_ms, "nothing is left of it", leaves=True)
        # A group of generation 0 has no record in the log.
        if group.generation > 0:
            tombstones.append(group_key(group_id))
    if tombstones:
        yield Append(ctx.topic_partition(group_id), tuple((key, None) for key in tombstones))


def delete_groups(ctx: GroupContext, event: e.DeleteGroups) -> Handler:
    """Delete each named group that is Empty, with all its offsets; answer with an error per group.

    The error is "NONE" for a deleted group and, for example, NON_EMPTY_GROUP for a group with
    members.

    Source: handleDeleteGroups (2.8), KIP-229.
    """
    errors: dict[str, str] = {}
    for group_id in event.group_ids:
        group = ctx.groups.get(group_id)
        error = ctx.validate_group_status(group_id, needs_name=False)
        error = error or react(ctx, group, event).reaction
        errors[group_id] = "NONE" if error == "delete" else error
        if error == "delete":
            gone = sorted(ctx.offsets_of(group_id).committed)
            yield from remove_offsets(ctx, group_id, gone, Offsets(), event.timestamp_ms)
    yield Respond(event.correlation_id, e.ErrorsResult(errors))


def offset_delete(ctx: GroupContext, event: e.OffsetDelete) -> Handler:
    """Delete a group's offsets for the requested partitions; answer with an error code for each.

    The code is NONE for a deleted offset. If the whole request is refused, answer with one error.
    An Empty group left without offsets is removed too.

    Source: handleOffsetDeleteRequest of KafkaApis.scala, handleDeleteOffsets (2.8), KIP-496.
    """
    group = ctx.groups.get(event.group_id)
    error = ctx.validate_group_status(event.group_id) or react(ctx, group, event).reaction
    if error != "delete" or group is None:
        yield Respond(event.correlation_id, e.ErrorsResult({}, error))
        return
    errors = dict.fromkeys(event.partitions, "NONE")
    # An offset of a topic to which a member subscribes stays.
    consumed = [tp for tp in event.partitions if _is_consumed(group, tp.topic)]
    errors |= dict.fromkeys(consumed, "GROUP_SUBSCRIBED_TO_TOPIC")
    gone = [tp for tp, code in errors.items() if code == "NONE"]
    after = ctx.offsets_of(event.group_id).without(gone)
    if gone:
        yield from remove_offsets(ctx, event.group_id, gone, after, event.timestamp_ms)
    errors |= dict.fromkeys(event.unknown, "UNKNOWN_TOPIC_OR_PARTITION")
    yield Respond(event.correlation_id, e.ErrorsResult(errors))


def _is_consumed(group: Group, topic: str) -> bool:
    """Return whether a member subscribes to the topic.

    Return False for an Empty group, else True if the subscriptions are unknown.

    Source: isSubscribedToTopic of GroupMetadata.scala (2.8).
    """
    topics = group.subscribed_topics
    return group.state is not EMPTY and (topics is None or topic in topics)
