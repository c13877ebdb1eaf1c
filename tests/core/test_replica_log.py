"""The log of a replica as a value: how it changes, what it knows of leader epochs, and where two logs part."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.broker.context import BrokerContext, HostedPartition
from kcontrol.broker.events import FetchResponse, FollowerFetch
from kcontrol.broker.log import (
    DIVERGENCE_CHECKS,
    AppendRecords,
    BecomeLeaderOrFollower,
    CheckpointHighWatermark,
    DelayedProduce,
    ReplicaLog,
    Truncate,
    UpdateConfig,
    UpdateFollowerState,
    UpdateHighWatermark,
    apply,
    truncation_offset,
)
from kcontrol.broker.replication import (
    apply_leadership_to_logs,
    fetch_position,
    fetch_response,
    is_follower_in_sync,
    update_follower_fetch_state,
)
from kcontrol.core.effects import UpdateLog
from kcontrol.core.model import EpochEnd, LeaderAndIsr, LogRecord
from tests.core.support import RULES_2_8, T0


def log_of(*leader_epochs: int) -> ReplicaLog:
    """A follower's log whose records were appended first under these leader epochs."""
    records = tuple(LogRecord(offset, epoch, f"{epoch}/{offset}") for offset, epoch in enumerate(leader_epochs))
    return apply(ReplicaLog(), AppendRecords(records))


def starts(log: ReplicaLog) -> list[tuple[int, int]]:
    return [tuple(entry) for entry in log.epochs]


def test_epochs_are_noted_as_records_come() -> None:
    """Each leader epoch has the offset of its first record. Source: LeaderEpochFileCache.assign (2.8)."""
    assert starts(log_of(0, 0, 2, 2, 5)) == [(0, 0), (2, 2), (5, 4)]


def test_an_epoch_without_records_gives_way() -> None:
    """A leader notes its epoch at its end; if the next epoch begins there too, only the later one is kept."""
    # Source: LeaderEpochFileCache.maybeTruncateNonMonotonicEntries (2.8).
    log = log_of(0, 0)
    for epoch in (1, 3):
        log = apply(log, BecomeLeaderOrFollower(7, epoch, leads=True))
    assert starts(log) == [(0, 0), (3, 2)]


def test_an_epoch_that_is_smaller_than_others_makes_them_give_way() -> None:
    """A record of an earlier leader epoch removes the later epochs from the log: the epochs grow, and so do their offsets."""
    # Source: LeaderEpochFileCache.maybeTruncateNonMonotonicEntries (2.8).
    assert starts(apply(log_of(0, 0, 2, 2, 5), AppendRecords((LogRecord(5, 2, "x"),)))) == [(0, 0), (2, 5)]
    assert starts(apply(log_of(0, 0, 2, 2, 5), AppendRecords((LogRecord(5, 3, "x"),)))) == [(0, 0), (2, 2), (3, 5)]


def test_truncation_forgets_epochs_and_lowers_the_high_watermark() -> None:
    """Epochs that begin at the new end or behind it are forgotten, the high watermark is never beyond the end."""
    # Source: Log.truncateTo, LeaderEpochFileCache.truncateFromEnd (2.8).
    log = apply(log_of(0, 0, 2, 2, 5), UpdateHighWatermark(4))
    cut = apply(log, Truncate(2, ""))
    assert (len(cut.records), starts(cut), cut.high_watermark) == (2, [(0, 0)], 2)
    kept = apply(log, Truncate(5, ""))
    assert kept == log


def test_truncation_at_the_end_forgets_an_epoch_without_records() -> None:
    """The truncation removes the last epoch of an old leader that appended no record under it, although no record is cut."""
    log = apply(log_of(0, 0), BecomeLeaderOrFollower(7, 3, leads=True))
    assert starts(apply(log, Truncate(2, ""))) == [(0, 0)]


def test_a_new_leader_knows_nothing_of_its_followers() -> None:
    """A new leader knows no follower's end; a leader that stays under a newer epoch keeps the ends that it knows."""
    # Source: Partition.makeLeader (2.8).
    led = apply(apply(log_of(0), BecomeLeaderOrFollower(1, 1, leads=True)), UpdateFollowerState(2, 1))
    assert led.follower_end_offset(2) == 1
    assert apply(led, BecomeLeaderOrFollower(1, 2, leads=True)).follower_end_offset(2) == 1
    followed = apply(led, BecomeLeaderOrFollower(2, 2))
    assert followed.followers == ()
    assert apply(followed, BecomeLeaderOrFollower(1, 3, leads=True)).follower_end_offset(2) == -1


def test_who_waits_is_served_by_the_high_watermark() -> None:
    """A producer waits until the high watermark is beyond its record, or until its broker does not lead any more."""
    one, two = DelayedProduce(1, "one"), DelayedProduce(2, "two")
    log = apply(apply(log_of(0), AppendRecords((LogRecord(1, 0, "a"),), one)), AppendRecords((LogRecord(2, 0, "b"),), two))
    assert log.waiting == (one, two)
    assert apply(log, UpdateHighWatermark(2)).waiting == (two,)
    assert apply(log, BecomeLeaderOrFollower(2, 1)).waiting == ()


def test_a_stop_leaves_the_disk() -> None:
    """Records, epochs and the checkpoint stay; the high watermark is the checkpoint, or the end if that comes first."""
    log = apply(apply(log_of(0, 0, 0), BecomeLeaderOrFollower(1, 0, leads=True)), UpdateHighWatermark(2))
    log = apply(apply(log, CheckpointHighWatermark()), UpdateHighWatermark(3))
    stopped = log.after_restart()
    assert stopped == ReplicaLog(log.records, log.epochs, 2, 2)
    assert apply(stopped, Truncate(1, "")).after_restart().high_watermark == 1


ENDS = [
    # asked    the epoch that the answer is about, and its end    why
    (5, EpochEnd(5, 5)),  # the latest epoch ends with the log
    (2, EpochEnd(2, 4)),  # one that is over ends where the next one begins
    (3, EpochEnd(2, 4)),  # of one that the log does not know, the largest below
    (0, EpochEnd(0, 2)),
    (6, EpochEnd(-1, -1)),  # beyond all: unknown
]


@pytest.mark.parametrize(("leader_epoch", "end"), ENDS)
def test_where_an_epoch_ends(leader_epoch: int, end: EpochEnd) -> None:
    """The largest known epoch up to the one asked for, with the start of the next."""
    # Source: LeaderEpochFileCache.endOffsetFor (2.0).
    assert log_of(0, 0, 2, 2, 5).end_offset_for(leader_epoch) == end


def test_before_all_epochs() -> None:
    """An epoch below all that are known ends where the first one begins. Source: LeaderEpochFileCache.endOffsetFor (2.0)."""
    assert log_of(2, 2).end_offset_for(1) == EpochEnd(1, 0)


def cut(rule: str, leader: ReplicaLog, follower: ReplicaLog) -> list[int]:
    """Where a follower cuts its log, round by round, until its leader finds that the two agree; by KIP-101 there is one round."""
    rounds = list[int]()
    follower = apply(follower, BecomeLeaderOrFollower(1, leader.leader_epoch))
    while diverging := DIVERGENCE_CHECKS[rule](leader, *fetch_position(broker(rule, follower), T0)):
        rounds.append(truncation_offset(follower, diverging))
        follower = apply(follower, Truncate(rounds[-1], rule))
        assert len(rounds) < 10, "that never ends"
    return rounds


def broker(rule: str, log: ReplicaLog) -> BrokerContext:
    """A broker that has this log of t-0."""
    return BrokerContext(2, RULES_2_8.with_changes(truncate_to=rule), keeps_logs=True, logs={T0: log})


def test_when_a_follower_asks_with_its_epoch() -> None:
    """By KIP-101 from the start of its role until it has cut its log or has a record more; by the common epoch always."""
    # Source: AbstractFetcherThread.maybeTruncate and the Truncating state of PartitionFetchState (2.8).
    follower = apply(log_of(0, 0), BecomeLeaderOrFollower(1, 1))
    cut, longer = Truncate(1, "leader_epoch"), AppendRecords((LogRecord(2, 1, "x"),))
    asks = [follower, apply(follower, cut), apply(follower, longer), apply(follower, BecomeLeaderOrFollower(-1, 1))]
    assert [fetch_position(broker("leader_epoch", log), T0) for log in asks] == [(2, 0), (1, -1), (3, -1), (2, -1)]
    assert [fetch_position(broker("common_epoch", log), T0) for log in asks] == [(2, 0), (1, 0), (3, 1), (2, 0)]


def test_by_the_common_epoch_there_may_be_another_round() -> None:
    """A follower that has cut its log has not found its leader's yet, unless it had before. Source: KIP-279."""
    follower = apply(log_of(0, 0, 0), BecomeLeaderOrFollower(1, 1))
    assert follower.truncating
    assert apply(follower, Truncate(2, "common_epoch")).truncating
    assert not apply(follower, Truncate(2, "leader_epoch")).truncating
    assert not apply(log_of(0, 0, 0), Truncate(2, "common_epoch")).truncating
    assert not apply(follower, BecomeLeaderOrFollower(2, 2, leads=True)).truncating


def led(*leader_epochs: int, by: int) -> ReplicaLog:
    """A leader's log, with the epoch under which it leads now."""
    return apply(log_of(*leader_epochs), BecomeLeaderOrFollower(1, by, leads=True))


# The leader's records and its epoch now, the follower's records, and the rounds of truncation under each rule.
PARTINGS = {
    "nothing in common but epoch 0": ((0, 0), 2, (0, 0, 0), {"high_watermark": [2], "leader_epoch": [2], "common_epoch": [2]}),
    "the follower has led in between": ((0, 0), 2, (0, 1, 1), {"high_watermark": [2], "leader_epoch": [2], "common_epoch": [1]}),
    "back to back leaders": ((0, 0, 2), 3, (0, 1, 1), {"high_watermark": [], "leader_epoch": [2], "common_epoch": [1]}),
    "two steps back": ((0, 1, 3), 5, (0, 0, 2, 4), {"high_watermark": [3], "leader_epoch": [3], "common_epoch": [3, 2, 1]}),
    "only behind": ((0, 0, 0), 2, (0,), {"high_watermark": [], "leader_epoch": [], "common_epoch": []}),
    "at the end of an epoch": ((0, 0, 2), 3, (0, 0), {"high_watermark": [], "leader_epoch": [], "common_epoch": []}),
    "empty": ((0, 0), 1, (), {"high_watermark": [], "leader_epoch": [], "common_epoch": []}),
}


@pytest.mark.parametrize("rule", DIVERGENCE_CHECKS)
@pytest.mark.parametrize("name", PARTINGS)
def test_where_two_logs_part(name: str, rule: str) -> None:
    """What each rule makes of a follower's log; by the common epoch, and by it alone, what is left is always the leader's."""
    # Source: KIP-101, KIP-279; AbstractFetcherThread.getOffsetTruncationState (2.8).
    leads, by, follows, rounds = PARTINGS[name]
    leader, follower = led(*leads, by=by), log_of(*follows)
    assert cut(rule, leader, follower) == rounds[rule]
    left = follower.records[: min([len(follows), *rounds[rule]])]
    assert rule != "common_epoch" or left == leader.records[: len(left)]


def test_an_unknown_end_sends_a_follower_to_its_high_watermark() -> None:
    """If the leader does not know the epoch, the follower truncates to its high watermark."""
    follower = apply(log_of(0, 0, 7), UpdateHighWatermark(1))
    assert truncation_offset(follower, EpochEnd(-1, -1)) == 1


TRUNCATIONS = [
    # the follower's records    what the leader has said    where it cuts its log
    ((0, 0), EpochEnd(-1, 5), 2),  # nothing of an epoch, and more than there is: at its own end
    ((0, 0, 0), EpochEnd(-1, 1), 1),
    ((0, 0, 0, 3), EpochEnd(1, 2), 3),  # an epoch that it does not know: where the largest below ends
    ((0, 1, 1), EpochEnd(1, 2), 2),  # one that both know: where the first of both ends it
    ((0, 1, 2), EpochEnd(1, 5), 2),
    ((2, 2), EpochEnd(1, 1), 0),  # only later ones: all of it
]


@pytest.mark.parametrize(("follows", "said", "offset"), TRUNCATIONS)
def test_where_a_follower_cuts_its_log(follows: tuple[int, ...], said: EpochEnd, offset: int) -> None:
    """By what its leader has said of an epoch and by its own end of that epoch, and never beyond its end."""
    # Source: AbstractFetcherThread.getOffsetTruncationState (2.8).
    assert truncation_offset(log_of(*follows), said) == offset


def hosting(leader: int, log: ReplicaLog, leader_epoch: int = 0, **rules: Any) -> BrokerContext:
    """Return broker 2 with t-0 led by this broker, with this log and the topic's settings."""
    hosted = {T0: HostedPartition(LeaderAndIsr(leader, (1, 2, 3), leader_epoch), (1, 2, 3))}
    return BrokerContext(
        2, RULES_2_8.with_changes(**rules), keeps_logs=True, logs={T0: apply(log, UpdateConfig(1))}, hosted=hosted
    )


def test_a_leader_notes_whatever_end_a_follower_has() -> None:
    """Also one that is lower than before, as after the loss of a tail; a known end is no change, and a follower notes none."""
    leader = apply(led(0, 0, by=0), UpdateFollowerState(3, 2))
    asked = [FollowerFetch(T0, 3, 0, offset) for offset in (1, 2, 3)]
    assert [list(update_follower_fetch_state(hosting(2, leader), event)) for event in asked] == [
        [UpdateLog(T0, UpdateFollowerState(3, 1))],
        [],
        [UpdateLog(T0, UpdateFollowerState(3, 3))],
    ]
    assert [list(update_follower_fetch_state(hosting(1, leader), event)) for event in asked] == [[], [], []]


def test_only_a_follower_takes_what_was_fetched() -> None:
    """An answer that comes when the broker leads itself, or has lost its replica, is left alone."""
    answer = FetchResponse(T0, 0, 1, None, (LogRecord(2, 0, "x"),))
    follower, leader = hosting(1, log_of(0, 0)), hosting(2, log_of(0, 0))
    gone = BrokerContext(2, RULES_2_8, keeps_logs=True, logs={T0: log_of(0, 0)})
    assert next(fetch_response(follower, answer)) == UpdateLog(T0, AppendRecords(answer.records))
    assert list(fetch_response(leader, answer)) == list(fetch_response(gone, answer)) == []


@pytest.mark.parametrize(("rule", "from_offset"), [("high_watermark", 1), ("leader_epoch_start", 2)])
def test_from_where_on_a_follower_may_join(rule: str, from_offset: int) -> None:
    """At the high watermark or beyond and, since 1.1.2, not before the leader's own epoch begins, at its very start included."""
    # Source: Partition.isFollowerInSync (2.8), KAFKA-7128.
    leader = apply(led(0, 0, by=1), UpdateHighWatermark(1))
    ctx = BrokerContext(1, RULES_2_8.with_changes(rejoins_at=rule), keeps_logs=True, logs={T0: leader})
    assert [offset for offset in range(3) if is_follower_in_sync(ctx, T0, 2, offset)] == list(range(from_offset, 3))
    beyond = apply(apply(leader, AppendRecords((LogRecord(2, 1, "x"), LogRecord(3, 1, "y")))), UpdateHighWatermark(3))
    ctx = BrokerContext(1, RULES_2_8.with_changes(rejoins_at=rule), keeps_logs=True, logs={T0: beyond})
    assert [offset for offset in range(5) if is_follower_in_sync(ctx, T0, 2, offset)] == [3, 4]


@pytest.mark.parametrize(("release_rule", "live", "may"), [(True, {1}, False), (True, {1, 2}, True), (False, {1}, True)])
def test_a_follower_that_is_not_alive_may_not_join(release_rule: bool, live: set[int], may: bool) -> None:
    """Since 3.3 a follower at the end of the log enters the ISR only if the leader takes it for alive."""
    # Source: Partition.isReplicaIsrEligible, called by isFollowerInSync and canAddReplicaToIsr (3.9).
    rules = RULES_2_8.with_changes(isr_requires_live_broker=release_rule)
    ctx = BrokerContext(1, rules, keeps_logs=True, logs={T0: led(0, 0, by=1)}, live_brokers=live)
    assert is_follower_in_sync(ctx, T0, 2, 2) is may


# ---------------------------------------------------------------- roles


ASKED = DelayedProduce(1, "asked")
READ = UpdateConfig(1)  # the settings of the topic have been read
FOLLOWER = apply(apply(apply(log_of(0, 0, 0), READ), BecomeLeaderOrFollower(1, 5)), UpdateHighWatermark(1))
LEADER = apply(
    apply(apply(log_of(0), READ), BecomeLeaderOrFollower(2, 5, leads=True)), AppendRecords((LogRecord(1, 5, "a"),), ASKED)
)
ROLES: dict[str, tuple[ReplicaLog, int, int, list[Any]]] = {
    # the log, the new leader and its epoch, and the intentions of a broker that cuts the log at the high watermark
    "as before": (FOLLOWER, 1, 5, []),
    "the same leader again": (FOLLOWER, 1, 6, [BecomeLeaderOrFollower(1, 6)]),
    "another leader": (FOLLOWER, 3, 5, [BecomeLeaderOrFollower(3, 5), Truncate(1, "high_watermark")]),
    "no leader": (FOLLOWER, -1, 6, [BecomeLeaderOrFollower(-1, 6)]),
    "itself": (FOLLOWER, 2, 6, [BecomeLeaderOrFollower(2, 6, leads=True)]),
    "it leads on": (LEADER, 2, 6, [BecomeLeaderOrFollower(2, 6, leads=True)]),
    "it does not lead any more": (LEADER, 1, 6, [BecomeLeaderOrFollower(1, 6), "asked", Truncate(0, "high_watermark")]),
}


@pytest.mark.parametrize("rule", ["high_watermark", "leader_epoch"])
@pytest.mark.parametrize("name", ROLES)
def test_what_a_replica_makes_of_who_leads(name: str, rule: str) -> None:
    """Another leader or another epoch is another role; before 0.11 a follower with a new leader cuts its log."""
    # A waiting producer gets its response from a leader that resigns. Source: ReplicaManager.makeFollowers and
    # Partition.makeFollower (0.8.0 to 0.10.2), whose result says whether the leader is another one.
    log, leader, leader_epoch, expected = ROLES[name]
    effects = list(apply_leadership_to_logs(hosting(leader, log, leader_epoch, truncate_to=rule)))
    seen = [effect.change if isinstance(effect, UpdateLog) else effect.correlation_id for effect in effects]
    assert seen == [change for change in expected if rule == "high_watermark" or not isinstance(change, Truncate)]


def test_a_replica_that_is_not_there_any_more_has_no_leader() -> None:
    """A broker keeps the log of a partition that was moved away, without a role; a waiting producer gets one response."""
    ctx = BrokerContext(2, RULES_2_8, keeps_logs=True, logs={T0: LEADER})
    first, answer = apply_leadership_to_logs(ctx)
    assert (first, answer.correlation_id) == (UpdateLog(T0, BecomeLeaderOrFollower(-1, -1)), "asked")
    ctx = BrokerContext(2, RULES_2_8, keeps_logs=True, logs={T0: apply(LEADER, BecomeLeaderOrFollower(-1, -1))})
    assert list(apply_leadership_to_logs(ctx)) == []
